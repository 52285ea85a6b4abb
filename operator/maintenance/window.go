// Package maintenance tells when the operator may do what can wait, and is felt: in the
// maintenance window of a registry.
package maintenance

import (
	"fmt"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/schedule"
)

// A Window is a time that recurs. The zero value is none.
type Window struct {
	given    bool
	opens    schedule.Schedule
	duration time.Duration
	err      error
}

// New returns the window of a spec, none for nil. One that can't open, as of a time zone
// that there is not, is closed for good, and its Err says what to change.
func New(spec *operatorv1alpha1.MaintenanceWindow) Window {
	if spec == nil {
		return Window{}
	}
	w := Window{given: true, duration: spec.Duration.Duration}
	if w.opens, w.err = parse(spec); w.err != nil {
		w.err = fmt.Errorf("spec.etcd.maintenanceWindow.%w", w.err)
	}
	return w
}

// parse reads what the schema of the host may have let through.
func parse(spec *operatorv1alpha1.MaintenanceWindow) (schedule.Schedule, error) {
	if spec.Duration.Duration <= 0 {
		return schedule.Schedule{}, fmt.Errorf("duration is %s: write how long the window is open, such as 2h", spec.Duration.Duration)
	}
	return schedule.Parse(spec.Schedule, spec.TimeZone)
}

// Given reports whether there is a window, be it one that never opens.
func (w Window) Given() bool { return w.given }

// Err says why a window that is given never opens, nil when it does.
func (w Window) Err() error { return w.err }

// Open reports whether the window is open at a time: it opened no longer ago than it lasts.
func (w Window) Open(now time.Time) bool {
	if !w.given || w.err != nil {
		return false
	}
	// The first time after one that is as long ago as the window lasts. It is zero when
	// there is none within five years.
	opened := w.opens.Next(now.Add(-w.duration))
	return !opened.IsZero() && !opened.After(now)
}

// Next returns when the window opens next, in its time zone; zero when it does not within
// five years.
func (w Window) Next(now time.Time) time.Time {
	if !w.given || w.err != nil {
		return time.Time{}
	}
	return w.opens.Next(now)
}

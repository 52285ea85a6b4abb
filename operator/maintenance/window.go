// Package maintenance tells when the operator may do what can wait, and is felt: in the
// maintenance window of a registry.
package maintenance

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // images that the operator runs in have no time zones

	"github.com/robfig/cron/v3"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// A Window is a time that recurs. The zero value is none.
type Window struct {
	given    bool
	schedule cron.Schedule
	duration time.Duration
	zone     *time.Location
	err      error
}

// New returns the window of a spec, none for nil. One that can't open, as of a time zone
// that there is not, is closed for good, and its Err says what to change.
func New(spec *operatorv1alpha1.MaintenanceWindow) Window {
	if spec == nil {
		return Window{}
	}
	w := Window{given: true, duration: spec.Duration.Duration}
	if w.schedule, w.zone, w.err = parse(spec); w.err != nil {
		w.err = fmt.Errorf("spec.etcd.maintenanceWindow.%w", w.err)
	}
	return w
}

// fields are those of a schedule.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// parse reads what the schema of the host may have let through.
func parse(spec *operatorv1alpha1.MaintenanceWindow) (cron.Schedule, *time.Location, error) {
	if spec.Duration.Duration <= 0 {
		return nil, nil, fmt.Errorf("duration is %s: write how long the window is open, such as 2h", spec.Duration.Duration)
	}
	// The empty name is UTC. "Local" is where the operator runs, which says nothing.
	zone, err := time.LoadLocation(spec.TimeZone)
	if err == nil && strings.EqualFold(spec.TimeZone, "local") {
		err = errors.New("unknown time zone")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("timeZone %q is not known (%w): write a name of the IANA database, such as Europe/Berlin", spec.TimeZone, err)
	}
	if strings.Contains(spec.Schedule, "=") {
		// The parser would take it for a time zone, and panics on some.
		return nil, nil, fmt.Errorf("schedule %q has a time zone or a variable in it: write five fields, such as 0 2 * * sat, and the time zone as timeZone", spec.Schedule)
	}
	schedule, err := fields.Parse(spec.Schedule)
	if err != nil {
		return nil, nil, fmt.Errorf("schedule %q is not valid (%w): write minute, hour, day of the month, month and day of the week, such as 0 2 * * sat", spec.Schedule, err)
	}
	if schedule.Next(time.Unix(0, 0).In(zone)).IsZero() {
		return nil, nil, fmt.Errorf("schedule %q names a day that there never is: write another one, such as 0 2 * * sat", spec.Schedule)
	}
	return schedule, zone, nil
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
	opened := w.schedule.Next(now.Add(-w.duration).In(w.zone))
	return !opened.IsZero() && !opened.After(now)
}

// Next returns when the window opens next, in its time zone; zero when it does not within
// five years.
func (w Window) Next(now time.Time) time.Time {
	if !w.given || w.err != nil {
		return time.Time{}
	}
	return w.schedule.Next(now.In(w.zone))
}

// Package verdict has what a stage of a reconcile found: one value that says what
// the stage's condition is and how the reconcile proceeds. Nothing else decides on
// that, and nothing is derived from a message.
package verdict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// State is how a stage was found.
type State int

const (
	// Done means that what the stage is for is there, as the spec says: its
	// condition is True.
	Done State = iota
	// Degraded means that what the stage is for is there and available, but not as
	// the spec says: the next stage follows.
	Degraded
	// Blocked means that what the stage is for is not there: in a registry that was
	// never complete, the next stage has to wait.
	Blocked
	// ReadOnly means that whatever the reconcile changed from here on could do
	// harm: later stages only observe.
	ReadOnly
)

const (
	// AtOnce is when to reconcile again after a step of which no watch reports.
	AtOnce = time.Second
	// Soon is when to reconcile again to see what no watch reports.
	Soon = 3 * time.Second
	// Backstop is when to reconcile again what waits, in case that no watch reports it.
	Backstop = 30 * time.Second
	// Vigil is how often a registry is reconciled when nothing happens: Secrets are not
	// watched, and nothing but etcd itself reports its alarms.
	Vigil = 2 * time.Minute
	// Resync is when to reconcile again what waits for a person.
	Resync = 10 * time.Minute
)

// A Verdict is what a stage found. The zero value is Done.
type Verdict struct {
	State State
	// Reason and Message are the condition's. In one that is not Done, the message
	// names the object that is awaited; in one that is Done, both are empty, or are
	// what a person should know nevertheless.
	Reason, Message string
	// After is when to reconcile again at the latest, also when the stage is Done; zero
	// leaves that to the caller.
	After time.Duration
	// Err is an unexpected error, to be tried again.
	Err error
}

// Waiting returns the verdict of a stage that is blocked until something changes.
func Waiting(reason, format string, args ...any) Verdict {
	return Verdict{State: Blocked, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// An Expected error is about something that a person has to change: it names the
// reason of the condition, and is not tried again as a failure is.
type Expected interface {
	error
	// Reason is the condition's.
	Reason() string
}

// Failed returns the verdict of an error: one that is Expected blocks the stage for its
// reason, and any other one is unexpected and is tried again.
func Failed(err error) Verdict {
	var expected Expected
	if errors.As(err, &expected) {
		return Waiting(expected.Reason(), "%s", err)
	}
	reason := operatorv1alpha1.ReasonInternalError
	if refused(err) {
		reason = operatorv1alpha1.ReasonHostRefused
	}
	v := Waiting(reason, "%s", err)
	v.Err = err
	return v
}

// refused reports whether an error is the host's decision on a request, and no failure to make
// one. Webhooks that give no code refuse with 400.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// Immutable reports whether the host refuses a change of what can't be changed. What it refuses
// for another reason, it would refuse of a new object as well.
func Immutable(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0 || slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool {
		return strings.Contains(cause.Message, apivalidation.FieldImmutableErrorMsg)
	})
}

// Complete reports whether the stage is Done.
func (v Verdict) Complete() bool { return v.State == Done }

// Usable reports whether what the stage is for is available.
func (v Verdict) Usable() bool { return v.State == Done || v.State == Degraded }

// In returns the verdict with the time after which to reconcile again.
func (v Verdict) In(after time.Duration) Verdict {
	v.After = after
	return v
}

// DegradedIf returns a verdict that is Degraded if what the stage is for is available
// nevertheless, and else Blocked. One that is Done or ReadOnly stays so.
func (v Verdict) DegradedIf(available bool) Verdict {
	switch {
	case v.State == Done || v.State == ReadOnly:
	case available:
		v.State = Degraded
	default:
		v.State = Blocked
	}
	return v
}

// AsReadOnly returns the verdict as one after which nothing may be changed.
func (v Verdict) AsReadOnly() Verdict {
	v.State = ReadOnly
	return v
}

// Note returns a verdict that is Done with something that a person should know. Of
// several notes, the last one's reason counts.
func (v Verdict) Note(reason, message string) Verdict {
	if v.Message != "" {
		message = v.Message + "; " + message
	}
	v.Reason, v.Message = reason, message
	return v
}

// Bounded keeps a message within what a condition can hold.
func Bounded(message string) string {
	const most = 8 << 10
	if len(message) > most {
		return message[:most] + "..."
	}
	return message
}

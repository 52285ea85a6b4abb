// Package operation drives the long operations of a registry, such as an upgrade, from
// phase to phase. It knows what all of them have in common: a registry has one at a
// time, a phase is in the status before it begins, so that an operator that was killed
// resumes there, nothing is changed in a pass that is read-only, and what holds the
// next phase, such as spec.paused, holds it between two phases and never within one.
// What a phase does is the Handler's.
package operation

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

// A Step is what a phase of an operation does.
type Step struct {
	Phase operatorv1alpha1.OperationPhase
	// Run does the next part of the phase. It is called again until its verdict is done.
	Run func(context.Context) verdict.Verdict
	// Prepare writes down what must be known before the phase begins; nil if nothing
	// must. The phase does not begin until its verdict is done.
	Prepare func(context.Context) verdict.Verdict
}

// A Handler is a type of operation, with what it is about.
type Handler interface {
	// Steps are those of the way forward, in their order.
	Steps() []Step
	// Rollback takes the place of all steps that are left when the operation is rolled
	// back.
	Rollback() Step
	// Resume returns the phase in which to continue after a hold, in which anything can
	// have happened. The same phase is checked again.
	Resume(at operatorv1alpha1.OperationPhase) operatorv1alpha1.OperationPhase
	// Waiting returns the verdict of the present phase.
	Waiting(format string, args ...any) verdict.Verdict
}

// Progress is how far an operation is.
type Progress int

const (
	// UnderWay means that it is not complete.
	UnderWay Progress = iota
	// Completed means that its last step is complete.
	Completed
	// RolledBack means that its rollback is complete.
	RolledBack
)

// A Driver drives the operation of one registry in one reconcile.
type Driver struct {
	// Status is the operation, which the driver changes, and Recorded what the host has
	// of it, nil when it has none.
	Status, Recorded *operatorv1alpha1.Operation
	Now              time.Time
	// ReadOnly says why nothing may be changed in this reconcile; empty when it may.
	ReadOnly string
	// HeldReason and HeldUntil are why the next phase may not begin, and what ends that;
	// empty when it may.
	HeldReason, HeldUntil string
	// HeldRetry is when to reconcile again while the next phase is held.
	HeldRetry time.Duration
}

// Advance runs the present phase and, when that is complete, enters the next one, which
// begins in the next reconcile. Its verdict is what the operation waits for.
func (d *Driver) Advance(ctx context.Context, handler Handler) (verdict.Verdict, Progress) {
	switch {
	case d.Recorded == nil || d.Recorded.Phase != d.Status.Phase:
		// The phase begins when it is written down.
		return handler.Waiting("starts").In(verdict.AtOnce), UnderWay
	case d.ReadOnly != "":
		return handler.Waiting("nothing is changed now: %s", d.ReadOnly), UnderWay
	case d.Status.PhaseCompleted && d.HeldReason == "":
		return d.resume(handler), UnderWay
	}
	steps, step := handler.Steps(), handler.Rollback()
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Phase == d.Status.Phase })
	switch {
	case i >= 0:
		step = steps[i]
	case step.Phase != d.Status.Phase:
		// Not even a rollback is begun for a phase of which nothing is known.
		return handler.Waiting("this operator does not know the phase %s: install the operator that began it, or a newer one", d.Status.Phase).In(d.HeldRetry), UnderWay
	}
	if !d.Status.PhaseCompleted {
		if v := step.Run(ctx); !v.Complete() {
			return v, UnderWay
		}
	}
	switch {
	case i < 0:
		return verdict.Verdict{}, RolledBack
	case i == len(steps)-1:
		return verdict.Verdict{}, Completed
	}
	return d.next(ctx, handler, steps[i+1]), UnderWay
}

// next enters a phase, unless something holds it.
func (d *Driver) next(ctx context.Context, handler Handler, step Step) verdict.Verdict {
	if d.HeldReason != "" {
		d.Status.PhaseCompleted = true
		return verdict.Waiting(d.HeldReason, "%s completed; %s starts when %s", d.Status.Phase, step.Phase, d.HeldUntil).In(d.HeldRetry)
	}
	if step.Prepare != nil {
		if v := step.Prepare(ctx); !v.Complete() {
			return v
		}
	}
	Enter(d.Status, step.Phase, d.Now)
	return handler.Waiting("starts").In(verdict.AtOnce)
}

// resume continues after a hold.
func (d *Driver) resume(handler Handler) verdict.Verdict {
	d.Status.PhaseCompleted = false
	if phase := handler.Resume(d.Status.Phase); phase != d.Status.Phase {
		Enter(d.Status, phase, d.Now)
		return handler.Waiting("starts again after the pause").In(verdict.AtOnce)
	}
	return handler.Waiting("is checked again after the pause").In(verdict.AtOnce)
}

// Enter has the next reconcile begin a phase.
func Enter(operation *operatorv1alpha1.Operation, phase operatorv1alpha1.OperationPhase, now time.Time) {
	operation.Phase, operation.PhaseCompleted, operation.PhaseStartedTime, operation.FailingSince = phase, false, metav1.NewTime(now), nil
	operation.Progress = string(phase)
}

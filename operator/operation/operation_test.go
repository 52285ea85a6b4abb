package operation

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

// scripted is an operation whose steps wait as they are told to, and count their calls.
type scripted struct {
	waits map[operatorv1alpha1.OperationPhase]bool
	calls []string
}

func (s *scripted) step(phase operatorv1alpha1.OperationPhase) Step {
	run := func(what string) func(context.Context) verdict.Verdict {
		return func(context.Context) verdict.Verdict {
			s.calls = append(s.calls, what)
			if s.waits[operatorv1alpha1.OperationPhase(what)] {
				return s.Waiting("%s is not complete", what)
			}
			return verdict.Verdict{}
		}
	}
	return Step{Phase: phase, Run: run(string(phase)), Prepare: run("before " + string(phase))}
}

func (s *scripted) Steps() []Step  { return []Step{s.step("One"), s.step("Two"), s.step("Three")} }
func (s *scripted) Rollback() Step { return s.step("Back") }
func (s *scripted) Resume(at operatorv1alpha1.OperationPhase) operatorv1alpha1.OperationPhase {
	if at == "Two" {
		return "One"
	}
	return at
}
func (s *scripted) Waiting(format string, args ...any) verdict.Verdict {
	return verdict.Waiting("Present", format, args...)
}

// TestAdvance is about what happens in one reconcile.
func TestAdvance(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		reason    string
		phase     operatorv1alpha1.OperationPhase
		completed bool
		change    func(*Driver)
		waits     []operatorv1alpha1.OperationPhase
		calls     []string
		then      operatorv1alpha1.OperationPhase
		thenDone  bool
		says      string
		progress  Progress
	}{
		{"a phase is complete", "One", false, nil, nil, []string{"One", "before Two"}, "Two", false, "starts", UnderWay},
		{"a phase waits", "One", false, nil, []operatorv1alpha1.OperationPhase{"One"}, []string{"One"}, "One", false, "One is not complete", UnderWay},
		{"what must be known before the next one is not", "One", false, nil, []operatorv1alpha1.OperationPhase{"before Two"}, []string{"One", "before Two"}, "One", false, "before Two is not complete", UnderWay},
		{"the last one is complete", "Three", false, nil, nil, []string{"Three"}, "Three", false, "", Completed},
		{"the rollback waits", "Back", false, nil, []operatorv1alpha1.OperationPhase{"Back"}, []string{"Back"}, "Back", false, "Back is not complete", UnderWay},
		{"the rollback is complete", "Back", false, nil, nil, []string{"Back"}, "Back", false, "", RolledBack},
		{"it is in a phase that is not known", "Four", false, nil, nil, nil, "Four", false, "this operator does not know the phase Four: install the operator that began it, or a newer one", UnderWay},
		{"it is not written down yet", "Two", false, func(d *Driver) { d.Recorded.Phase = "One" }, nil, nil, "Two", false, "starts", UnderWay},
		{"nothing is", "One", false, func(d *Driver) { d.Recorded = nil }, nil, nil, "One", false, "starts", UnderWay},
		{"nothing may be changed", "Two", false, func(d *Driver) { d.ReadOnly = "etcd is another" }, nil, nil, "Two", false, "nothing is changed now: etcd is another", UnderWay},
		{"the next one is held", "One", false, func(d *Driver) { d.HeldReason, d.HeldUntil = "Paused", "spec.paused is false" }, nil, []string{"One"}, "One", true, "One completed; Two starts when spec.paused is false", UnderWay},
		{"and stays so without running again", "One", true, func(d *Driver) { d.HeldReason, d.HeldUntil = "Paused", "spec.paused is false" }, nil, nil, "One", true, "One completed; Two starts when spec.paused is false", UnderWay},
		{"a phase that runs is not held", "Two", false, func(d *Driver) { d.HeldReason, d.HeldUntil = "Paused", "spec.paused is false" }, []operatorv1alpha1.OperationPhase{"Two"}, []string{"Two"}, "Two", false, "Two is not complete", UnderWay},
		{"nor is the end", "Three", false, func(d *Driver) { d.HeldReason = "Paused" }, nil, []string{"Three"}, "Three", false, "", Completed},
		{"after a hold, the phase is checked again", "One", true, nil, nil, nil, "One", false, "is checked again after the pause", UnderWay},
		{"or an earlier one begins", "Two", true, nil, nil, nil, "One", false, "starts again after the pause", UnderWay},
	} {
		handler := &scripted{waits: map[operatorv1alpha1.OperationPhase]bool{}}
		for _, phase := range test.waits {
			handler.waits[phase] = true
		}
		status := &operatorv1alpha1.Operation{Phase: test.phase, PhaseCompleted: test.completed, FailingSince: &metav1.Time{Time: now.Add(-time.Hour)}}
		d := &Driver{Status: status, Recorded: status.DeepCopy(), Now: now, HeldRetry: time.Minute}
		if test.change != nil {
			test.change(d)
		}
		v, progress := d.Advance(t.Context(), handler)
		if progress != test.progress || v.Message != test.says || v.Complete() != (progress != UnderWay) || status.Phase != test.then || status.PhaseCompleted != test.thenDone || !slices.Equal(handler.calls, test.calls) {
			t.Errorf("%s: %+v, progress %d, status %+v, calls %q", test.reason, v, progress, status, handler.calls)
		}
		if entered := status.PhaseStartedTime.Time.Equal(now) && status.FailingSince == nil && status.Progress == string(test.then); entered != (test.then != test.phase) {
			t.Errorf("%s: it enters a phase: %t, %+v", test.reason, entered, status)
		}
	}
}

// TestKilled goes through all phases with an operator that is killed in each of them,
// once before and once after the host has the status: each phase is prepared before it
// is run, and in the status before it is prepared for the next one.
func TestKilled(t *testing.T) {
	handler := &scripted{}
	recorded := &operatorv1alpha1.Operation{Phase: "One"}
	var seen []operatorv1alpha1.OperationPhase
	for range 20 {
		var progress Progress
		for _, killed := range []bool{true, false} {
			status := recorded.DeepCopy()
			d := &Driver{Status: status, Recorded: recorded, Now: time.Now()}
			_, progress = d.Advance(t.Context(), handler)
			if !killed {
				seen = append(seen, recorded.Phase)
				recorded = status
			}
		}
		if progress == Completed {
			if want := []operatorv1alpha1.OperationPhase{"One", "Two", "Three"}; !slices.Equal(seen, want) {
				t.Errorf("it went through %q, want %q", seen, want)
			}
			return
		}
	}
	t.Errorf("it is never complete: %q", seen)
}

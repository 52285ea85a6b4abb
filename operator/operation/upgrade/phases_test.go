package upgrade

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/snapshot"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestSnapshot is about what an upgrade makes of a snapshot: it keeps a fresh one, has a
// stale one taken again with all that was checked before, and else waits.
func TestSnapshot(t *testing.T) {
	for _, test := range []struct {
		reason       string
		saved        snapshot.Saved
		taken        verdict.Verdict
		phase, hold  string
		says, record string
	}{
		{"it was taken", snapshot.Saved{Name: "s1", Revision: 42, CompletionTime: now.Add(-14 * time.Minute)}, verdict.Verdict{}, "Etcd", "Etcd", "starts", "s1"},
		{"it was taken long ago", snapshot.Saved{Name: "s1", Revision: 42, CompletionTime: now.Add(-16 * time.Minute)}, verdict.Verdict{}, "Preflight", "Preflight", "starts again: the snapshot s1 completed at 2030-01-02T02:48:05Z, and must be recent", ""},
		{"it was taken long ago, and no pod tells of it", snapshot.Saved{Name: "s1", CompletionTime: now.Add(-16 * time.Minute)}, verdict.Waiting("Progressing", "again"), "Preflight", "Preflight", "must be recent", ""},
		{"it is under way", snapshot.Saved{}, verdict.Waiting("Progressing", "snapshot s1 is being saved"), "Snapshot", "Snapshot", "snapshot s1 is being saved; etcd has a single member", ""},
		{"it can't be taken", snapshot.Saved{}, verdict.Waiting("SnapshotFailed", "no room"), "Snapshot", "SnapshotFailed", "no room", ""},
		{"it failed", snapshot.Saved{}, verdict.Failed(errors.New("no route")), "Snapshot", "InternalError", "no route", ""},
	} {
		h, did := upgrading(t, "v0.2.0", "v0.3.0", "Snapshot"), &actions{saved: test.saved, taken: test.taken}
		h.Actions, h.Registry.Spec.Etcd.Replicas = did, 1
		driver := operation.Driver{Status: h.Operation, Recorded: h.DeepCopy(), Now: now}
		v, _ := driver.Advance(t.Context(), h)
		if v.Complete() || string(h.Phase) != test.phase || v.Reason != test.hold || !strings.Contains(v.Message, test.says) || !slices.Equal(did.calls, []string{"snapshot s1"}) {
			t.Errorf("%s: in phase %s after %v: %+v", test.reason, h.Phase, did.calls, v)
		}
		if last := history.Last(h.Registry); last.Snapshot != test.record || (last.SnapshotRevision == 42) != (test.record != "") {
			t.Errorf("%s: the history has %+v", test.reason, last)
		}
	}
}

// TestSnapshotWithoutHistory takes a snapshot after the history was emptied: it is noted of
// the upgrade, which is in the history again.
func TestSnapshotWithoutHistory(t *testing.T) {
	h := upgrading(t, "v0.2.0", "v0.3.0", "Snapshot")
	h.Actions = &actions{saved: snapshot.Saved{Name: "s1", Revision: 42, CompletionTime: h.Now}}
	h.Registry.Status.History = nil
	if v := h.snapshot(t.Context()); !v.Complete() {
		t.Errorf("%+v", v)
	}
	if last := history.Last(h.Registry); last.Version != "v0.3.0" || last.Snapshot != "s1" || last.SnapshotRevision != 42 {
		t.Errorf("the history has %+v", last)
	}
}

// TestPrepare is about what is written down before a phase: the snapshot's name before
// it is taken, and the release before its servers come. Either begins the transition.
func TestPrepare(t *testing.T) {
	prepared := func(phase operatorv1alpha1.OperationPhase, h Handler) verdict.Verdict {
		steps := h.Steps()
		i := slices.IndexFunc(steps, func(s operation.Step) bool { return s.Phase == phase })
		h.Registry.Status.History = h.Registry.Status.History[1:]
		return steps[i].Prepare(t.Context())
	}
	h := upgrading(t, "v0.2.0", "v0.3.0", "Preflight")
	if v := prepared("Snapshot", h); !v.Complete() || h.Snapshot != "v0.2.0-before-v0.3.0-20300102t030405z" || history.Last(h.Registry).Version != "v0.3.0" {
		t.Errorf("%+v, %q, %+v", v, h.Snapshot, history.Last(h.Registry))
	}
	h, did := upgrading(t, "v0.2.0", "v0.3.0", "Etcd"), &actions{}
	h.Actions = did
	if v := prepared("Server", h); !v.Complete() || !slices.Equal(did.calls, []string{"record v0.3.0"}) || history.Last(h.Registry).Version != "v0.3.0" {
		t.Errorf("%+v after %v, %+v", v, did.calls, history.Last(h.Registry))
	}
	h = upgrading(t, "v0.2.0", "v0.3.0", "Etcd")
	h.Actions = &actions{recordErr: errors.New("no route")}
	if v := prepared("Server", h); v.Complete() || v.Err == nil {
		t.Errorf("it is not recorded: %+v", v)
	}
}

// TestSteps leaves an external etcd alone.
func TestSteps(t *testing.T) {
	h := upgrading(t, "v0.2.0", "v0.3.0", "Preflight")
	if got := len(h.Steps()); got != len(phases) {
		t.Errorf("%d steps, want one for each phase", got)
	}
	for i, step := range h.Steps() {
		if step.Phase != phases[i] {
			t.Errorf("step %d is %s, want %s", i, step.Phase, phases[i])
		}
	}
	h.Registry.Spec.Etcd.External = &operatorv1alpha1.ExternalEtcd{}
	for _, step := range h.Steps() {
		if step.Phase == operatorv1alpha1.PhaseSnapshot || step.Phase == operatorv1alpha1.PhaseEtcd {
			t.Errorf("an external etcd has the phase %s", step.Phase)
		}
	}
}

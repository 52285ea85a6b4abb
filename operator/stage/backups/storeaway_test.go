package backups

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestStoreAway has the store be away for five minutes, in each step of a backup: whatever the
// step, BackupReady says so from the first attempt on, the others are not far apart, nothing is
// left of them, and within a minute of its return all is as if it had not been away.
func TestStoreAway(t *testing.T) {
	for _, step := range []string{"save", "verify", "prune", "delete"} {
		t.Run(step, func(t *testing.T) {
			mine := asked("mine")
			if step == "delete" {
				mine.Spec.DeletionPolicy = operatorv1alpha1.BackupDeletionPolicyDelete
			}
			w := newBackupWorld(t, mine)
			w.fails = map[string]string{step: "75 error: no route to store"}
			if step == "delete" {
				w.settle()
				w.now = w.now.Add(time.Minute)
				if err := w.raw.Delete(t.Context(), mine); err != nil {
					t.Fatal(err)
				}
			}
			begun := w.now
			s, jobs, most := w.attempt(), w.jobs, len(w.list())
			for w.now.Sub(begun) < 5*time.Minute {
				v := s.Found.Verdict
				if v.Complete() || v.Err != nil || v.Reason != operatorv1alpha1.ReasonStoreUnreachable || !strings.Contains(v.Message, "since "+begun.Format(time.RFC3339)) || !strings.Contains(v.Message, "no route to store") {
					t.Fatalf("after %s it says %+v", w.now.Sub(begun), v)
				}
				if v.After <= 0 || v.After > time.Minute {
					t.Fatalf("after %s it is tried again after %s", w.now.Sub(begun), v.After)
				}
				w.now = w.now.Add(v.After)
				s = w.attempt()
			}
			if attempts := w.jobs - jobs; attempts < 4 || attempts > 12 || len(w.list()) > most {
				t.Errorf("there were %d attempts, and then there are %s", attempts, w.phases())
			}
			if said := len(s.Events.(*events.FakeRecorder).Events); said > 0 {
				t.Errorf("the last attempt made %d events", said)
			}
			back := w.now
			w.fails = nil
			for w.phases() != map[bool]string{false: good, true: "fleet-20260301-1000 Completed"}[step == "delete"] || !s.Found.Complete() {
				v := s.Found.Verdict
				w.now = w.now.Add(max(time.Second, v.After))
				if w.now.Sub(back) > time.Minute {
					t.Fatalf("a minute after its return there are %s: %+v", w.phases(), v)
				}
				s = w.attempt()
			}
			if status := s.Registry.Status.Backup; status.StoreUnreachable != nil || status.LastFailure != nil {
				t.Errorf("then the status is %+v", status)
			}
		})
	}
}

// TestStoreRefuses has a store refuse what is asked: it is asked again at the next time of the
// schedule.
func TestStoreRefuses(t *testing.T) {
	w := newBackupWorld(t)
	w.fails = map[string]string{"save": "1 error: the store does not accept the credentials"}
	w.settle()
	jobs := w.jobs
	for minute := range 30 {
		w.now, w.reconciles = w.now.Add(time.Minute), 0
		s := w.settle()
		if v := s.Found.Verdict; w.jobs > jobs || v.Reason != operatorv1alpha1.ReasonBackupFailed {
			t.Fatalf("after %d minutes there were %d attempts: %+v", minute, w.jobs, v)
		}
	}
}

// attempt reconciles, and has Jobs run, until no phase changes and no other Job runs.
func (w *backupWorld) attempt() *Stage {
	w.t.Helper()
	for {
		phases, jobs, created := w.phases(), w.jobs, w.created
		w.reconcile()
		w.run()
		if s := w.reconcile(); w.phases() == phases && w.jobs == jobs && w.created == created {
			return s
		}
	}
}

// list returns all backups there are.
func (w *backupWorld) list() []operatorv1alpha1.ClusterRegistryBackup {
	w.t.Helper()
	list := &operatorv1alpha1.ClusterRegistryBackupList{}
	if err := w.raw.List(w.t.Context(), list, client.InNamespace("team")); err != nil {
		w.t.Fatal(fmt.Errorf("list the backups: %w", err))
	}
	return list.Items
}

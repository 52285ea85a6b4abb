package backups

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// change changes the registry.
func (w *backupWorld) change(how func(*operatorv1alpha1.ClusterRegistry)) {
	w.t.Helper()
	registry := w.scope().Registry
	how(registry)
	if err := w.raw.Update(w.t.Context(), registry); err != nil {
		w.t.Fatal(err)
	}
}

// TestNotRemoved has a store let no old backup be removed: that is said and tried once an hour, also
// where no backup follows, and backups are taken all the same. Then it does, and nothing is said.
func TestNotRemoved(t *testing.T) {
	w := newBackupWorld(t)
	w.fails = map[string]string{"prune": "1 error: a lock of the bucket forbids it"}
	s := w.settle()
	begun, jobs := w.now, w.jobs
	if v := s.Found.Verdict; !v.Complete() || v.Reason != operatorv1alpha1.ReasonBackupsNotRemoved {
		t.Errorf("at first it says %+v", v)
	}
	w.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Backup.Suspend = true })
	for w.now.Sub(begun) < 190*time.Minute {
		v := s.Found.Verdict
		if !strings.Contains(v.Message, "old backups can't be removed since "+begun.Format(time.RFC3339)) || !strings.Contains(v.Message, "a lock of the bucket forbids it") {
			t.Fatalf("after %s it says %+v", w.now.Sub(begun), v)
		}
		if v.After <= 0 {
			t.Fatalf("after %s it is not looked at again", w.now.Sub(begun))
		}
		w.now, w.reconciles = w.now.Add(v.After), 0
		s = w.settle()
	}
	if attempts := w.jobs - jobs; attempts != 3 {
		t.Errorf("in three hours there were %d more attempts", attempts)
	}
	w.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Backup.Suspend = false })
	if v := w.settle().Found.Verdict; !strings.Contains(w.phases(), "fleet-20260301-1300 Completed") || !v.Complete() || v.Reason != operatorv1alpha1.ReasonBackupsNotRemoved {
		t.Errorf("there are %s, and it says %+v", w.phases(), v)
	}
	w.fails, w.now, w.reconciles = nil, w.now.Add(2*time.Hour), 0
	s = w.settle()
	if v := s.Found.Verdict; v.Reason != operatorv1alpha1.ReasonBackedUp || s.Registry.Status.Backup.PruneFailure != nil || strings.Contains(v.Message, "can't be removed") {
		t.Errorf("then it works, and it says %+v", v)
	}
}

// TestSomeRemoved deletes the objects of the backups that were removed, and says why others were not.
func TestSomeRemoved(t *testing.T) {
	w := newBackupWorld(t, asked("mine"))
	w.settle()
	w.removes, w.now = `{"names":["mine"],"failure":"a lock of the bucket forbids it"}`, w.now.Add(time.Hour)
	s := w.settle()
	if v := s.Found.Verdict; w.phases() != "fleet-20260301-1000 Completed, fleet-20260301-1100 Completed" || v.Reason != operatorv1alpha1.ReasonBackupsNotRemoved || !strings.Contains(v.Message, "a lock of the bucket forbids it") {
		t.Errorf("there are %s, and it says %+v", w.phases(), v)
	}
	w.removes, w.now = "", w.now.Add(time.Hour)
	if v := w.settle().Found.Verdict; v.Reason != operatorv1alpha1.ReasonBackedUp {
		t.Errorf("then it says %+v", v)
	}
}

// TestRemovalNotReplaced has a person ask for a backup while old ones are being removed again: the
// Job that does that continues, and its end is read first.
func TestRemovalNotReplaced(t *testing.T) {
	w := newBackupWorld(t)
	w.fails = map[string]string{"prune": "1 error: a lock of the bucket forbids it"}
	w.settle()
	w.now = w.now.Add(2 * time.Hour)
	w.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Backup.Suspend = true })
	job := func() string {
		out := &batchv1.Job{}
		if err := w.raw.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet-backup"}, out); err != nil {
			t.Fatal(err)
		}
		step, _, _ := strings.Cut(out.Annotations[operatorv1alpha1.AnnotationBackup], " ")
		return step + " " + string(out.UID)
	}
	for range 3 { // the Job of before goes first
		w.reconcile()
	}
	begun := job()
	if err := w.raw.Create(t.Context(), asked("mine")); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if now := job(); !strings.HasPrefix(begun, "prune ") || now != begun {
		t.Errorf("the Job is %q, and was %q", now, begun)
	}
	if w.settle(); !strings.HasPrefix(w.phases(), "fleet-20260301-1000 Completed, mine Completed") {
		t.Errorf("then there are %s", w.phases())
	}
}

package backups

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/verdict"
)

// newDeletedWorld is one whose registry is being deleted, with deletionPolicy Snapshot.
func newDeletedWorld(t *testing.T) *backupWorld {
	t.Helper()
	w := newBackupWorld(t)
	registry := w.scope().Registry
	registry.Finalizers, registry.Spec.DeletionPolicy = []string{operatorv1alpha1.Finalizer}, operatorv1alpha1.DeletionPolicySnapshot
	registry.Spec.Backup.Verify, registry.Spec.Backup.Suspend = operatorv1alpha1.VerifyNever, true
	if err := w.raw.Update(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	if err := w.raw.Delete(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	w.now = time.Now()
	return w
}

// attempts are the last backups of a registry, with what became of them.
func (w *backupWorld) attempts() string {
	at := w.scope().Registry.DeletionTimestamp.UTC().Format("20060102-150405")
	return strings.ReplaceAll(w.phases(), "fleet-"+at, "fleet")
}

// awaited is what is said of a registry that is to be saved first.
func awaited(s *Stage) string { return s.AwaitsLast(nil) }

// TestLastBackup expects a registry with deletionPolicy Snapshot to be saved and verified
// before anything of it goes, though backups are suspended and not verified otherwise, and
// that to be recorded.
func TestLastBackup(t *testing.T) {
	w := newDeletedWorld(t)
	if s := w.scope(); !s.SavesFirst() || s.DropsData() {
		t.Fatalf("before, it saves first: %v, drops data: %v", s.SavesFirst(), s.DropsData())
	}
	if s := w.reconcile(); !strings.Contains(awaited(s), "nothing of it is deleted before its last backup is verified: a backup is being created; to delete the registry without it, set spec.deletionPolicy to Retain") {
		t.Errorf("at first it says %q", awaited(s))
	}
	s := w.settle()
	if got := w.attempts(); got != "fleet-del1 Completed" || !s.saved() || s.SavesFirst() || !s.DropsData() {
		t.Errorf("there are %s, saved %v", got, s.saved())
	}
	if last := w.scope().Registry.Status.Backup.Deletion; last == nil || last.VerifiedTime == nil || last.Revision != 42 || !strings.HasSuffix(last.Name, "-del1") {
		t.Errorf("recorded is %+v", last)
	}
}

// TestLastBackupKilled kills the operator at each write in turn: there is one last backup.
func TestLastBackupKilled(t *testing.T) {
	for round := range 7 {
		for write := range 4 {
			w := newDeletedWorld(t)
			for range round {
				w.reconcile()
				w.run()
			}
			w.kill = write
			w.reconcile()
			if w.kill = neverKilled; write%2 == 0 {
				w.run()
			}
			if s := w.settle(); w.attempts() != "fleet-del1 Completed" || !s.saved() {
				t.Fatalf("killed in reconcile %d at write %d: %s", round, write, w.attempts())
			}
		}
	}
}

// TestLastBackupStale has the operator be down, or the registry be paused, while the last backup
// ends: another one is taken, and one that is recorded counts from then on.
func TestLastBackupStale(t *testing.T) {
	w := newDeletedWorld(t)
	for i := 0; i < 20 && !strings.Contains(w.attempts(), "Verifying"); i++ {
		w.reconcile()
		w.run()
	}
	w.now = w.now.Add(time.Hour)
	says := ""
	for i := 0; i < 20 && !strings.Contains(w.attempts(), "del2"); i++ {
		w.run()
		says = w.reconcile().Found.last.Message
	}
	if s := w.scope(); s.saved() || !strings.HasPrefix(w.attempts(), "fleet-del1 Completed, fleet-del2") || !strings.Contains(says, "what was written since is not in it") {
		t.Fatalf("saved %v, %s, %q", s.saved(), w.attempts(), says)
	}
	s := w.settle()
	if !s.saved() || w.attempts() != "fleet-del1 Completed, fleet-del2 Completed" || !strings.HasSuffix(s.Registry.Status.Backup.Deletion.Name, "-del2") {
		t.Errorf("saved %v, %s", s.saved(), w.attempts())
	}
	w.now = w.now.Add(24 * time.Hour)
	if s = w.scope(); !s.saved() || s.SavesFirst() {
		t.Error("a deletion that has begun goes back")
	}
}

// TestLastBackupOfAnother has a status say that the registry was saved for another deletion, as
// after it was restored together with its registry.
func TestLastBackupOfAnother(t *testing.T) {
	w := newDeletedWorld(t)
	s := w.scope()
	s.Registry.Status.Backup = &operatorv1alpha1.BackupStatus{Lineage: s.Identity.Record.Lineage, Deletion: &operatorv1alpha1.BackupSuccess{Name: "fleet-20250101-000000-del1"}}
	if err := w.raw.Status().Update(t.Context(), s.Registry); err != nil {
		t.Fatal(err)
	}
	if s = w.scope(); s.saved() || !s.SavesFirst() || s.DropsData() {
		t.Errorf("saved %v, saves first %v, drops data %v", s.saved(), s.SavesFirst(), s.DropsData())
	}
	if s = w.settle(); !s.saved() || w.attempts() != "fleet-del1 Completed" {
		t.Errorf("saved %v, %s", s.saved(), w.attempts())
	}
	if s.Registry.DeletionTimestamp = nil; s.saved() {
		t.Error("it is saved for a deletion that there is not")
	}
}

// TestBackupInTheWay has a backup of another registry have the name of the one that a deletion,
// and an upgrade, wait for: what to do is said, and it is not taken for it.
func TestBackupInTheWay(t *testing.T) {
	w := newDeletedWorld(t)
	other := asked("fleet-" + w.scope().Registry.DeletionTimestamp.UTC().Format("20060102-150405") + "-del1")
	other.Spec.RegistryRef.Name = "other"
	if err := w.raw.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	says := "nothing of it is deleted before its last backup is verified: "
	s := w.reconcile()
	for range 3 {
		s = w.reconcile()
	}
	if got := awaited(s); s.saved() || !strings.Contains(got, says+"ClusterRegistryBackup "+other.Name+" is in the way: it is of ClusterRegistry other; delete it") || !strings.HasSuffix(got, orNoBackup) {
		t.Errorf("saved %v, it says %q", s.saved(), got)
	}
	if err := w.raw.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if s = w.settle(); !s.saved() {
		t.Errorf("once it is deleted: %s", w.attempts())
	}
	before := asked("fleet-20260301t102000z-op1")
	before.Spec.RegistryRef.Name = "other"
	w = newBackupWorld(t, before)
	s = w.scope()
	s.Observe(t.Context(), nil)
	if v := s.takeBefore(t.Context(), "v0.4.0-before-v0.5.0-20260301t102000z"); v.Err == nil || !strings.Contains(v.Err.Error(), before.Name+" is in the way") {
		t.Errorf("an upgrade: %+v", v)
	}
	if err := s.createBackup(t.Context(), "gone", operatorv1alpha1.BackupUpgrade); err != nil {
		t.Error(err)
	}
	if err := s.createBackup(t.Context(), "gone", operatorv1alpha1.BackupUpgrade); err != nil {
		t.Errorf("the same once more: %v", err)
	}
}

// TestLastBackupFails has the store down when a registry is deleted: it says what it waits for
// and how to end that, tries again, and goes once the store is back.
func TestLastBackupFails(t *testing.T) {
	w := newDeletedWorld(t)
	w.fails = map[string]string{"save": "1 no route"}
	s := w.settle()
	if got := awaited(s); w.attempts() != "fleet-del1 Failed" || s.saved() || !s.SavesFirst() || !strings.Contains(got, "no route; the next one is taken at ") || !strings.HasSuffix(got, orNoBackup) {
		t.Fatalf("%s: %q", w.attempts(), got)
	}
	if v := s.Found.Verdict; v.After <= 0 || v.After > 5*time.Minute || s.Registry.Status.Backup.NextRun != nil {
		t.Errorf("it comes back after %s", v.After)
	}
	for policy, drops := range map[operatorv1alpha1.DeletionPolicy]bool{operatorv1alpha1.DeletionPolicyRetain: false, operatorv1alpha1.DeletionPolicyDelete: true} {
		other := w.scope()
		if other.Registry.Spec.DeletionPolicy = policy; other.SavesFirst() || other.DropsData() != drops {
			t.Errorf("with %s it still waits, or drops %v", policy, other.DropsData())
		}
	}
	w.fails, w.now = map[string]string{"verify": "65 hash"}, w.now.Add(6*time.Minute)
	if s = w.settle(); w.attempts() != "fleet-del1 Failed, fleet-del2 Damaged" || s.saved() {
		t.Errorf("a damaged one: %s", w.attempts())
	}
	w.fails, w.now = nil, w.now.Add(11*time.Minute)
	if s = w.settle(); !strings.Contains(w.attempts(), "fleet-del3 Completed") || !s.saved() {
		t.Errorf("then it works: %s", w.attempts())
	}
}

// TestLastBackupBlocked is about what keeps the last backup from being taken.
func TestLastBackupBlocked(t *testing.T) {
	for reason, test := range map[string]struct {
		change func(*Stage)
		says   string
	}{
		"paused":   {func(s *Stage) { s.Registry.Spec.Paused = true }, "no backup is taken until spec.paused is false"},
		"no store": {func(s *Stage) { s.Registry.Spec.Backup = nil }, "it has no spec.backup, which names the store"},
		"no Secret": {func(s *Stage) {
			s.Found.blocked = verdict.Waiting(operatorv1alpha1.ReasonStoreSecretMissing, "there is no Secret")
		}, "there is no Secret"},
		"foreground": {func(s *Stage) { s.Registry.Finalizers = append(s.Registry.Finalizers, "foregroundDeletion") }, "remove the finalizer foregroundDeletion from it"},
		"no etcd":    {func(*Stage) {}, "waiting for etcd to be complete"},
	} {
		s := newDeletedWorld(t).scope()
		s.Aggregation = done
		test.change(s)
		if got := awaited(s); !strings.Contains(got, test.says) || !strings.HasSuffix(got, orNoBackup) {
			t.Errorf("%s: %q", reason, got)
		}
	}
	s := newDeletedWorld(t).scope()
	got := s.AwaitsLast(&metav1.Condition{Type: "EtcdReady", Status: "False", Message: "no quorum"})
	if !strings.Contains(got, "waiting for EtcdReady: no quorum") {
		t.Errorf("without etcd: %q", got)
	}
	// One that has no data needs none.
	for _, record := range []*etcd.Record{nil, {InitialClusterState: "new"}} {
		if s.Identity.Record = record; s.SavesFirst() || s.DropsData() {
			t.Errorf("with the record %+v it waits for a backup of nothing", record)
		}
	}
	s.Identity.Record, s.Volumes.Members = nil, make([]corev1.PersistentVolumeClaim, 1)
	if !s.SavesFirst() {
		t.Error("volumes without a record go without a backup")
	}
}

// TestTerminatingNamespace expects a namespace that is terminating to wait for no backup: the
// newest verified one is named, in an event about the namespace, once.
func TestTerminatingNamespace(t *testing.T) {
	for _, test := range []struct {
		reason   string
		verified bool
		says     string
	}{
		{"there is one", true, "backup mine of 2026-03-01T10:20:00Z, at s3://b/one/mine/manifest.json, is the newest that is verified, and what was written since is in none"},
		{"there is none", false, "there is no verified backup of this data"},
	} {
		w := newBackupWorld(t)
		if test.verified {
			w = newBackupWorld(t, asked("mine"))
		}
		if w.settle(); test.verified != strings.Contains(w.phases(), "mine Completed") {
			t.Fatal(w.phases())
		}
		s := w.scope()
		s.Terminating, s.Registry.Spec.DeletionPolicy = true, operatorv1alpha1.DeletionPolicySnapshot
		all, _, err := backupsOf(t.Context(), w.raw, client.ObjectKeyFromObject(s.Registry))
		if err != nil {
			t.Fatal(err)
		}
		if !test.verified {
			all = nil
		} else {
			all = all[len(all)-1:]
		}
		gap := s.Gap(all)
		if s.SavesFirst() || s.DropsData() || !strings.HasPrefix(gap, noBackupThere) || !strings.Contains(gap, test.says) {
			t.Errorf("%s: saves first %v, drops %v: %q", test.reason, s.SavesFirst(), s.DropsData(), gap)
		}
		recorder := events.NewFakeRecorder(10)
		s.Events = recorder
		s.TellGap(gap)
		s.Before.Conditions = []metav1.Condition{{Type: operatorv1alpha1.ConditionProgressing, Message: "waiting; " + gap}}
		s.TellGap(gap)
		if len(recorder.Events) != 1 || !strings.Contains(<-recorder.Events, "ClusterRegistry team/fleet: "+noBackupThere) {
			t.Errorf("%s: not one event", test.reason)
		}
		if s.Registry.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicyRetain; s.Gap(all) != "" {
			t.Errorf("%s: with Retain there is a gap", test.reason)
		}
	}
	terminating := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "fleet-backup", nil)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	if v := again(terminating); v.Err != nil || v.After != verdict.AtOnce {
		t.Errorf("a Job that can't be created there: %+v", v)
	}
}

// TestBackupBefore expects a backup before the snapshot of an operation, where there is a
// store, and another way out than to wait for it.
func TestBackupBefore(t *testing.T) {
	const snapshot = "v0.4.0-before-v0.5.0-20260301t102000z"
	w := newBackupWorld(t)
	w.settle()
	before := w.phases()
	v := w.scope()
	v.Observe(t.Context(), nil)
	if got := v.takeBefore(t.Context(), snapshot); got.Complete() || got.Reason != operatorv1alpha1.ReasonProgressing || got.Message != "a backup comes first: a backup is being created" {
		t.Fatalf("at first: %+v", got)
	}
	w.fails = map[string]string{"save": "1 no route"}
	w.settle()
	s := w.scope()
	s.Observe(t.Context(), nil)
	if got := s.takeBefore(t.Context(), snapshot); got.Complete() || !strings.HasPrefix(got.Message, "nothing was changed: a backup comes first: backup fleet-20260301t102000z-op1 is Failed: 1 no route; the next one is taken at ") || !strings.HasSuffix(got.Message, "; to continue without a backup, set spec.backup.suspend to true") {
		t.Errorf("the store is down: %+v", got)
	}
	for reason, change := range map[string]func(*Stage){
		"suspended": func(s *Stage) { s.Registry.Spec.Backup.Suspend = true },
		"no store":  func(s *Stage) { s.Registry.Spec.Backup = nil },
		"external":  func(s *Stage) { s.Found.blocked = verdict.Waiting(operatorv1alpha1.ReasonBackupUnsupported, "") },
	} {
		s := w.scope()
		if change(s); !s.takeBefore(t.Context(), snapshot).Complete() {
			t.Errorf("%s: it waits", reason)
		}
	}
	w.fails, w.now = nil, w.now.Add(6*time.Minute)
	for range 2 { // it is created, and then taken
		s = w.scope()
		s.Observe(t.Context(), nil)
		s.takeBefore(t.Context(), snapshot)
		w.settle()
	}
	s = w.scope()
	s.Observe(t.Context(), nil)
	if got := s.takeBefore(t.Context(), snapshot); !got.Complete() || !strings.Contains(w.phases(), "fleet-20260301t102000z-op2 Completed") {
		t.Errorf("then it works: %s, after %s: %+v", w.phases(), before, got)
	}
}

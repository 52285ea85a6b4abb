package restoring

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/encryption/encryptiontest"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/keyring"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass/passtest"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// s3Store is a store of the tests, and claimStore another one.
var (
	s3Store    = operatorv1alpha1.BackupStore{S3: &operatorv1alpha1.S3Store{Bucket: "b", SecretRef: &operatorv1alpha1.LocalObjectReference{Name: "store"}}}
	claimStore = operatorv1alpha1.BackupStore{PersistentVolumeClaim: &operatorv1alpha1.VolumeStore{ClaimName: "backups"}}
)

// byRef is a registry that begins with the backup b of another namespace.
const byRef = "{spec: {etcd: {replicas: 3}, restoreFrom: {backupRef: {name: b, namespace: old}}}}"

// restoringStage returns the stage of a registry of a release that can restore.
func restoringStage(t *testing.T, text string, objects ...client.Object) *Stage {
	t.Helper()
	s := &Stage{Pass: passtest.New(t, text, objects...).Pass, Watches: func(string) bool { return true }}
	s.Release = version.Release{Version: "v0.4.0", Members: version.Members{Etcd: "v3.7.3"}}
	s.HostVersion = "v1.37.1"
	return s
}

// lostStage returns the stage of a complete registry whose etcd has lost its quorum, with an
// approval in YAML.
func lostStage(t *testing.T, approval string, objects ...client.Object) *Stage {
	t.Helper()
	s := restoringStage(t, "{spec: {mode: Aggregated, etcd: {replicas: 3}, recovery: "+approval+"}, status: {version: v0.4.0, etcd: {}"+operandtest.Complete+"}}", objects...)
	s.Identity.Record = etcd.NewRecord(3, "ca", etcd.Identity{ClusterID: "c1", Members: map[string]string{"fleet-etcd-0": "a0", "fleet-etcd-1": "a1", "fleet-etcd-2": "a2"}}, true)
	s.Identity.Record.Lineage = "one"
	s.Before.Recovery = &operatorv1alpha1.RecoveryStatus{ID: "c1-1", LastRevision: 100}
	return s
}

// saved returns the backup old/b in a phase, and the registry that it is of, with a store.
func saved(phase operatorv1alpha1.BackupPhase, store operatorv1alpha1.BackupStore) []client.Object {
	b := &operatorv1alpha1.ClusterRegistryBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "old", Name: "b"}}
	b.Spec.RegistryRef.Name, b.Status.Phase, b.Status.Message = "fleet", phase, "said so"
	if phase == operatorv1alpha1.BackupCompleted {
		b.Status.Name, b.Status.Location, b.Status.Lineage, b.Status.SHA256 = "b", "s3://b/one/b/manifest.json", "one", "ab"
	}
	of := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "old", Name: "fleet"}}
	of.Spec.Backup = &operatorv1alpha1.Backup{Store: store}
	return []client.Object{b, of}
}

// TestObserveRestore is about what there is before a backup is looked up: what is in the way
// of it is said, and nothing is looked up then.
func TestObserveRestore(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "store"}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-fleet-etcd-4"}}
	completed := append(saved(operatorv1alpha1.BackupCompleted, s3Store), secret)
	asked := restore.ID(operatorv1alpha1.RestoreFrom{BackupRef: &operatorv1alpha1.BackupReference{Name: "b", Namespace: "old"}})
	recorded := func(restored *etcd.Restored) func(*Stage) {
		return func(s *Stage) { s.Identity.Record = &etcd.Record{Lineage: "new", Restored: restored} }
	}
	deleted := saved(operatorv1alpha1.BackupCompleted, s3Store)
	deleted[0].SetDeletionTimestamp(new(metav1.Now()))
	deleted[0].SetFinalizers([]string{operatorv1alpha1.Finalizer})
	served, underWay := &operatorv1alpha1.RestoredStatus{CompletionTime: new(metav1.Now())}, &etcd.Record{Lineage: "new", Restored: &etcd.Restored{From: asked, Store: &s3Store}}
	before := func(status *operatorv1alpha1.RestoredStatus, record *etcd.Record) func(*Stage) {
		return func(s *Stage) { s.Before.Restored, s.Before.Etcd.ClusterID, s.Identity.Record = status, "c", record }
	}
	for reason, test := range map[string]struct {
		text    string
		objects []client.Object
		change  func(*Stage)
		reason  string
		says    string
		looks   bool
	}{
		"nothing is asked for":                {"{spec: {etcd: {replicas: 3}}}", nil, nil, "", "", false},
		"it can be looked up":                 {byRef, completed, nil, "", "", true},
		"there is no such backup":             {byRef, nil, nil, operatorv1alpha1.ReasonRestorePending, "ClusterRegistryBackup old/b, which does not exist", false},
		"it is being taken":                   {byRef, saved(operatorv1alpha1.BackupSaving, s3Store), nil, operatorv1alpha1.ReasonRestorePending, "which is not complete", false},
		"it failed":                           {byRef, saved(operatorv1alpha1.BackupFailed, s3Store), nil, operatorv1alpha1.ReasonRestoreRefused, "is not in its store: delete this", false},
		"it is being deleted":                 {byRef, deleted, nil, operatorv1alpha1.ReasonRestoreRefused, "ClusterRegistryBackup old/b is being deleted", false},
		"it is damaged":                       {byRef, saved(operatorv1alpha1.BackupDamaged, s3Store), nil, operatorv1alpha1.ReasonRestoreRefused, "is damaged: delete this", false},
		"its registry is gone":                {byRef, completed[:1], nil, operatorv1alpha1.ReasonRestoreRefused, "lineage one and name b", false},
		"it is on a claim of elsewhere":       {byRef, saved(operatorv1alpha1.BackupCompleted, claimStore), nil, operatorv1alpha1.ReasonRestoreRefused, "which pods of its own namespace alone can mount", false},
		"there is no Secret here":             {byRef, completed[:2], nil, operatorv1alpha1.ReasonRestorePending, "no backup can be restored before Secret store exists", false},
		"an earlier registry has left data":   {byRef, append(completed[:3:3], claim), nil, operatorv1alpha1.ReasonRestoreRefused, "data of an earlier ClusterRegistry of this name (PersistentVolumeClaim data-fleet-etcd-4)", false},
		"an earlier registry left its record": {byRef, completed, recorded(nil), operatorv1alpha1.ReasonRestoreRefused, "(ConfigMap fleet-etcd-identity)", false},
		"another backup was restored":         {byRef, completed, recorded(&etcd.Restored{From: "other", Completed: new(time.Now())}), operatorv1alpha1.ReasonRestoreRefused, "data of an earlier ClusterRegistry", false},
		"this backup was restored":            {byRef, nil, recorded(&etcd.Restored{From: asked, Completed: new(time.Now())}), "", "", false},
		"the registry was complete once":      {strings.Replace(byRef, "}}}}", "}}}, status: {etcd: {}"+operandtest.Complete+"}}", 1), nil, nil, "", "", false},
		"its record is lost in the restore":   {byRef, append(completed[:3:3], claim), before(&operatorv1alpha1.RestoredStatus{}, nil), operatorv1alpha1.ReasonRestoreRefused, "bring ConfigMap fleet-etcd-identity back", false},
		"its record is lost after it":         {byRef, append(completed[:3:3], claim), before(served, nil), "", "", false},
		"its record was made up after it":     {byRef, completed, before(served, &etcd.Record{}), "", "", false},
		"its record is older than etcd":       {byRef, completed, before(served, underWay), operatorv1alpha1.ReasonIdentityMismatch, "the record is older than etcd", false},
		"it is older than the registry":       {strings.Replace(byRef, "}}}}", "}}}, status: {etcd: {}"+operandtest.Complete+"}}", 1), completed, before(nil, underWay), operatorv1alpha1.ReasonIdentityMismatch, "the record is older than etcd", false},
		"its keys are missing":                {strings.Replace(byRef, "{spec: {", "{spec: {server: {encryption: {secretRef: {name: keys}}}, ", 1), completed, func(s *Stage) { s.Keys.Held = verdict.Waiting("EncryptionInvalid", "no Secret") }, "EncryptionInvalid", "no Secret", false},
	} {
		s := restoringStage(t, test.text, test.objects...)
		if test.change != nil {
			test.change(s)
		}
		var err error
		if s.InTheWay, err = InTheWay(t.Context(), s.Pass); err != nil {
			t.Fatal(err)
		}
		v := s.observe(t.Context())
		if v.Reason != test.reason || !strings.Contains(v.Message, test.says) || v.Err != nil {
			t.Errorf("%s: %+v, want %s: %s", reason, v, test.reason, test.says)
		}
		if v.State == verdict.ReadOnly && s.Found.Rendered() != nil {
			t.Errorf("%s: it would be restored over", reason)
		}
		if strings.Contains(v.Message, "said so") || strings.Contains(v.Message, "s3://") {
			t.Errorf("%s: it repeats what another namespace says: %s", reason, v.Message)
		}
		if looks := v.Complete() && s.Found.Rendered() != nil; looks != test.looks {
			t.Errorf("%s: it renders %+v", reason, s.Found.Rendered())
		}
	}
}

// TestReferredHere repeats what a backup of the registry's own namespace says of itself.
func TestReferredHere(t *testing.T) {
	for phase, says := range map[operatorv1alpha1.BackupPhase]string{
		operatorv1alpha1.BackupSaving:    "is not complete: said so",
		operatorv1alpha1.BackupFailed:    "is not in its store (said so)",
		operatorv1alpha1.BackupDamaged:   "is damaged (said so)",
		operatorv1alpha1.BackupCompleted: "(the backup is at s3://b/one/b/manifest.json)",
	} {
		b := saved(phase, s3Store)[0] // its registry is gone
		b.SetNamespace("team")
		s := restoringStage(t, strings.Replace(byRef, "namespace: old", "namespace: team", 1), b)
		if v := s.observe(t.Context()); !strings.Contains(v.Message, says) {
			t.Errorf("%s: %s, want %s", phase, v.Message, says)
		}
	}
}

// TestRestorePending continues with what is recorded, whatever became of the backup since.
func TestRestorePending(t *testing.T) {
	from := restore.ID(operatorv1alpha1.RestoreFrom{BackupRef: &operatorv1alpha1.BackupReference{Name: "b", Namespace: "old"}})
	s := restoringStage(t, byRef)
	s.Identity.Record = &etcd.Record{Lineage: "new", Restored: &etcd.Restored{From: from, Store: &s3Store, Lineage: "one"}}
	if v := s.observe(t.Context()); !v.Complete() {
		t.Fatal(v)
	}
	if r := s.Found.Rendered(); r == nil || r.Lineage != "new" || r.Source != "one" || r.Store.S3.Bucket != "b" {
		t.Errorf("it renders %+v", r)
	}
	if s.Registry.Status.Restored == nil || s.Registry.Status.Restored.CompletionTime != nil || Growing(s.Pass) == "" {
		t.Errorf("the status has %+v", s.Registry.Status.Restored)
	}
}

// TestLookedUp is about what the Job that looks a backup up ends with.
func TestLookedUp(t *testing.T) {
	const report = `{"name":"b","revision":42,"bytes":7,"sha256":"ab","time":"2026-03-01T10:00:00Z","location":"s3://b/one/b/manifest.json","release":"RELEASE","etcdVersion":"3.7.3"}`
	for reason, test := range map[string]struct {
		exit    int32
		message string
		age     time.Duration
		reason  string
		says    string
	}{
		"it fits":                 {0, strings.Replace(report, "RELEASE", "v0.4.0", 1), 0, "", ""},
		"it did a while ago":      {0, strings.Replace(report, "RELEASE", "v0.4.0", 1), 9 * time.Minute, "", ""},
		"it did days ago":         {0, strings.Replace(report, "RELEASE", "v0.4.0", 1), 48 * time.Hour, operatorv1alpha1.ReasonRestorePending, "the backup is looked up again: what was found at "},
		"it did not days ago":     {0, strings.Replace(report, "RELEASE", "v9.0.0", 1), 48 * time.Hour, operatorv1alpha1.ReasonRestoreRefused, "which this operator does not know"},
		"it does not":             {0, strings.Replace(report, "RELEASE", "v9.0.0", 1), 0, operatorv1alpha1.ReasonRestoreRefused, "which this operator does not know"},
		"no report":               {0, "{}", 0, operatorv1alpha1.ReasonRestoreRefused, "has reported no backup"},
		"the store is down":       {1, "no route to store", time.Second, operatorv1alpha1.ReasonRestorePending, "no route to store; the operator looks again"},
		"the store was down":      {1, "no route to store", time.Minute, operatorv1alpha1.ReasonRestorePending, "the backup is looked up again"},
		"a report that is no one": {0, "what", 0, operatorv1alpha1.ReasonRestorePending, "looked up again"},
	} {
		s := restoringStage(t, byRef, append(saved(operatorv1alpha1.BackupCompleted, s3Store), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "store"}})...)
		if v := s.observe(t.Context()); !v.Complete() {
			t.Fatal(v)
		}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "job"}}
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.Now.Add(-test.age))}}
		if test.exit != 0 {
			job.Status.Conditions[0].Type = batchv1.JobFailed
		}
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{batchv1.ControllerUidLabel: "job"}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: backup.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: test.exit, Message: test.message}}}}
		s.Releases = []version.Release{s.Release}
		v := s.lookedUp(t.Context(), job, backup.Read(job, []corev1.Pod{pod}))
		if v.Reason != test.reason || !strings.Contains(v.Message, test.says) {
			t.Errorf("%s: %+v", reason, v)
		}
		if (s.Found.Begin != nil) != v.Complete() {
			t.Errorf("%s: it begins: %v", reason, s.Found.Begin != nil)
		}
		if s.Found.Begin == nil {
			continue
		}
		record := s.Found.Begin(etcd.NewRecord(3, "ca", etcd.Identity{}, false))
		if !record.Restored.Pending() || record.Replicas != 1 || record.CA != "ca" || record.Release != "v0.4.0" || record.Lineage == "" || record.Lineage == "one" || record.Restored.Backup != "old/b" {
			t.Errorf("%s: recorded is %+v", reason, record)
		}
	}
}

// TestRestoringOlder says in events that newer backups are passed over, when the restore begins
// and when it is done.
func TestRestoringOlder(t *testing.T) {
	s := restoringStage(t, byRef)
	recorder := events.NewFakeRecorder(10)
	s.Events = recorder
	s.Found.source = &source{Store: s3Store, Lineage: "one"}
	report := contract.BackupReport{Backup: contract.Backup{Name: "b", Release: "v0.4.0", EtcdVersion: "3.7.3"}, VerifiedTime: new(time.Now()), PassedOver: []string{"c: it has format 2"}}
	s.beginWith(report)
	if got := <-recorder.Events; !strings.Contains(got, "Warning BackupsPassedOver the restored backup b, taken at 0001-01-01T00:00:00Z, is not the newest: what was written since is in others that can't be used: c: it has format 2") {
		t.Errorf("it begins with %q", got)
	}
	s.Identity.Record = s.Found.Begin(etcd.NewRecord(1, "ca", etcd.Identity{}, false))
	s.Identity.Record.Restored = s.Identity.Record.Restored.Done(s.Now)
	ReportServed(s.Pass)
	if restored, older := <-recorder.Events, <-recorder.Events; !strings.Contains(restored, "Normal Restored ") || !strings.Contains(older, "Warning BackupsPassedOver the restored backup b") {
		t.Errorf("it ends with %q and %q", restored, older)
	}
}

// TestBeginEncrypted records the keys that the spec has, and that what is stored in clear can
// be read, too: servers that come up with the backup read all of it, and what is not stored
// under the first key is stored again.
func TestBeginEncrypted(t *testing.T) {
	key := encryptiontest.Key(t, "first")
	s := restoringStage(t, byRef)
	s.Keys = keyring.Found{InUse: encryption.Keys{encryption.Identity}, Desired: key}
	s.Found.source = &source{Store: s3Store, Lineage: "one", keys: []string{"aescbc/old"}}
	if got := s.target().Needs; !slices.Equal(got, []string{"aescbc/old"}) {
		t.Errorf("the backup needs the keys %v", got)
	}
	if got := s.target().Keys; !slices.Equal(got, []string{"secretbox/first"}) {
		t.Errorf("the target has the keys %v", got)
	}
	s.beginWith(contract.BackupReport{Backup: contract.Backup{Name: "b", Release: "v0.4.0", EtcdVersion: "3.7.3"}})
	record := s.Found.Begin(etcd.NewRecord(1, "ca", etcd.Identity{}, false))
	if !slices.Equal(record.KeyIDs, []string{"secretbox/first", "identity"}) || record.Keys == "" || record.StoredUnder == "secretbox/first" {
		t.Errorf("recorded are the keys %v, stored under %s", record.KeyIDs, record.StoredUnder)
	}
	if len(key) != 1 {
		t.Errorf("the keys of the spec are %v now", key.IDs())
	}
}

// TestRecoveryBackup looks up a backup of the same data, and nothing before the loss is known.
func TestRecoveryBackup(t *testing.T) {
	const approval = "{from: Backup, name: b, acceptDataLossUpTo: 20, approvedFor: c1-1}"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "store"}}
	objects := saved(operatorv1alpha1.BackupCompleted, s3Store)
	for _, object := range objects {
		object.SetNamespace("team")
	}
	objects[0].(*operatorv1alpha1.ClusterRegistryBackup).Status.Revision = 80
	for reason, test := range map[string]struct {
		objects []client.Object
		change  func(*Stage)
		says    string
		looks   bool
	}{
		"it is there":                   {append(objects[:2:2], secret), nil, "", true},
		"there is none":                 {nil, nil, "there is no ClusterRegistryBackup of that name in namespace team", false},
		"it is of other data":           {append(objects[:2:2], secret), func(s *Stage) { s.Identity.Record.Lineage = "two" }, "is of other data", false},
		"its store is not known":        {append(objects[:2:2], secret), func(s *Stage) { s.Registry.Spec.Backup = nil }, "is not set: set it first", false},
		"too much is lost":              {append(objects[:2:2], secret), func(s *Stage) { s.Registry.Spec.Recovery.AcceptDataLossUpTo = 3 }, "backup b lacks 20 known revisions", false},
		"the Secret is gone":            {objects[:2:2], nil, "before Secret store exists", false},
		"the loss is not known yet":     {append(objects[:2:2], secret), func(s *Stage) { s.Before.Recovery = nil }, "", false},
		"another loss was approved":     {append(objects[:2:2], secret), func(s *Stage) { s.Registry.Spec.Recovery.ApprovedFor = "c1-0" }, "", false},
		"a member's data is to be used": {append(objects[:2:2], secret), func(s *Stage) { s.Registry.Spec.Recovery.From = "Member" }, "", false},
	} {
		s := lostStage(t, approval, test.objects...)
		s.Registry.Spec.Backup = &operatorv1alpha1.Backup{Store: s3Store}
		if test.change != nil {
			test.change(s)
		}
		s.ObserveRecovery(t.Context())
		v := s.Found.Recovery.Verdict
		if v.Err != nil || !strings.Contains(v.Message, test.says) || v.Complete() != (test.says == "") || (s.Found.source != nil) != test.looks {
			t.Errorf("%s: %+v, %+v, want %q", reason, v, s.Found.source, test.says)
		}
	}
}

// TestFoundBackup refuses a backup of another release: the servers that run may not read it.
func TestFoundBackup(t *testing.T) {
	for release, begins := range map[string]bool{"v0.4.0": true, "v0.5.0": false} {
		s := lostStage(t, "{from: Backup, name: b, approvedFor: c1-1}")
		s.Found.source = &source{Store: s3Store, Lineage: "one", Name: "b"}
		v := s.foundBackup(contract.BackupReport{Backup: contract.Backup{Name: "b", Release: release}})
		if v.Complete() != begins || (s.Found.Recovery.Restored != nil) != begins || !begins && !strings.Contains(v.Message, "was taken from release v0.5.0, and the registry runs v0.4.0") {
			t.Errorf("%s: %+v", release, v)
		}
	}
}

// TestRestoreInRecovery restores what a recovery has recorded, of a registry that was complete:
// no other record may have one restored.
func TestRestoreInRecovery(t *testing.T) {
	s := lostStage(t, "null")
	s.Identity.Record.Restored, s.Identity.Record.Recovered = &etcd.Restored{Store: &s3Store, Lineage: "one"}, &etcd.Recovered{Phase: operatorv1alpha1.RecoveryRestoring}
	if v := s.observe(t.Context()); !v.Complete() || s.Found.Rendered() == nil {
		t.Errorf("%+v, %+v", v, s.Found.Rendered())
	}
	s = lostStage(t, "null")
	s.Identity.Record.Restored = &etcd.Restored{Store: &s3Store, Lineage: "one"}
	if v := s.observe(t.Context()); v.State != verdict.ReadOnly || s.Found.Rendered() != nil {
		t.Errorf("%+v, %+v", v, s.Found.Rendered())
	}
}

// TestOlderRecovery changes nothing by a record that says that a recovery is under way which was
// complete already.
func TestOlderRecovery(t *testing.T) {
	s := lostStage(t, "null")
	s.Identity.Record.Recovered = &etcd.Recovered{ID: "c1-1", Phase: operatorv1alpha1.RecoveryStopping}
	s.Before.Recovered = &operatorv1alpha1.RecoveredStatus{ID: "c1-1"}
	if v := s.observe(t.Context()); v.State != verdict.ReadOnly || !strings.Contains(v.Message, "the record is older than etcd") {
		t.Errorf("%+v", v)
	}
}

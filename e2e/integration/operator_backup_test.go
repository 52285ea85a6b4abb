package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// backup returns a backup of the site that a person asks for.
func (s *site) backup(name string, change func(*operatorv1alpha1.ClusterRegistryBackup)) *operatorv1alpha1.ClusterRegistryBackup {
	b := &operatorv1alpha1.ClusterRegistryBackup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
	b.Spec.RegistryRef.Name = "fleet"
	change(b)
	return b
}

// phase waits until a backup is in a phase, with a text in its message.
func (s *site) phase(name string, phase operatorv1alpha1.BackupPhase, says string) *operatorv1alpha1.ClusterRegistryBackup {
	s.t.Helper()
	b := &operatorv1alpha1.ClusterRegistryBackup{}
	s.eventually(fmt.Sprintf("backup %s to be %s", name, phase), func(ctx context.Context) error {
		if err := s.Get(ctx, s.key(name), b); err != nil {
			return err
		}
		if b.Status.Phase != phase || !strings.Contains(b.Status.Message, says) {
			return fmt.Errorf("it is %s: %s", b.Status.Phase, b.Status.Message)
		}
		return nil
	})
	return b
}

// testBackups is about backups that can't be taken: their registry does not exist, has no
// store, or goes. None of them holds anything.
func testBackups(t *testing.T, s *site) {
	unchanged := func(*operatorv1alpha1.ClusterRegistryBackup) {}
	framework.Create(t, s, s.backup("early", unchanged))
	s.phase("early", operatorv1alpha1.BackupPending, "there is no ClusterRegistry fleet in this namespace")
	s.apply("fleet", "{mode: Independent}")
	s.phase("early", operatorv1alpha1.BackupPending, "has no spec.backup")
	if early := s.phase("early", operatorv1alpha1.BackupPending, ""); !meta.IsStatusConditionPresentAndEqual(early.Status.Conditions, operatorv1alpha1.BackupConditionCompleted, metav1.ConditionUnknown) ||
		!meta.IsStatusConditionTrue(early.Status.Conditions, operatorv1alpha1.BackupConditionReconciling) || early.Spec.DeletionPolicy != operatorv1alpha1.BackupDeletionPolicyRetain {
		t.Errorf("the backup is %+v", early)
	}

	// What was begun, by the status, fails with its store, and content that goes with its
	// object holds nothing once the store is unknown.
	begun := s.backup("begun", unchanged)
	framework.Create(t, s, begun)
	begun = s.phase("begun", operatorv1alpha1.BackupPending, "")
	begun.Status.Phase = operatorv1alpha1.BackupSaving
	if err := s.Status().Update(t.Context(), begun); err != nil {
		t.Fatal(err)
	}
	s.phase("begun", operatorv1alpha1.BackupFailed, "has no spec.backup")
	held := s.backup("held", func(b *operatorv1alpha1.ClusterRegistryBackup) {
		b.Spec.DeletionPolicy = operatorv1alpha1.BackupDeletionPolicyDelete
		controllerutil.AddFinalizer(b, operatorv1alpha1.FinalizerBackup)
	})
	framework.Create(t, s, held)
	s.phase("held", operatorv1alpha1.BackupPending, "")
	if err := s.Delete(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	s.gone(held)

	scheduled := s.backup("scheduled", func(b *operatorv1alpha1.ClusterRegistryBackup) {
		b.Annotations = map[string]string{operatorv1alpha1.AnnotationBackupReason: string(operatorv1alpha1.BackupScheduled)}
	})
	framework.Create(t, s, scheduled)
	s.phase("scheduled", operatorv1alpha1.BackupFailed, "has no spec.backup")
	s.gone(s.deleted("fleet"))
	s.phase("early", operatorv1alpha1.BackupPending, "there is no ClusterRegistry fleet in this namespace")

	// One whose etcd has never formed waits for no last backup.
	s.apply("fleet", "{version: v0.2.0, mode: Independent, etcd: {replicas: 1}, deletionPolicy: Snapshot, backup: {schedule: 0 * * * *, store: {persistentVolumeClaim: {claimName: backups}}}}")
	s.gone(s.deleted("fleet"))
	testBackupRefused(t, s)
}

// testBackupRefused applies what the schemas refuse, with a sentence that says what to do.
func testBackupRefused(t *testing.T, s *site) {
	const secret = "secretRef: {name: store}"
	for spec, says := range map[string]string{
		"{schedule: '0 * * * *', store: {}}": "name exactly one store",
		"{schedule: '0 * * * *', store: {s3: {bucket: abc, " + secret + "}, gcs: {bucket: abc, " + secret + "}}}":                                                                                                                           "name exactly one store",
		"{schedule: '0 * * * *', store: {s3: {bucket: abc}}}":                                                                                                                                                                               "say how to sign in to the store",
		"{schedule: '0 * * * *', store: {s3: {bucket: abc, " + secret + "}, serviceAccountName: saver}}":                                                                                                                                    "say how to sign in to the store",
		"{schedule: '0 * * * *', store: {persistentVolumeClaim: {claimName: c}, serviceAccountName: saver}}":                                                                                                                                "remove store.serviceAccountName",
		"{schedule: hourly, store: {persistentVolumeClaim: {claimName: c}}}":                                                                                                                                                                "write five fields",
		"{schedule: '0 * * * *', timeZone: Local, store: {persistentVolumeClaim: {claimName: c}}}":                                                                                                                                          "write the name of a time zone",
		"{schedule: '0 * * * *', store: {s3: {bucket: abc, endpoint: 'http://s3.example', " + secret + "}}}":                                                                                                                                "write an https URL without user, query and fragment",
		"{schedule: '0 * * * *', store: {s3: {bucket: abc, endpoint: 'https://a:b@s3.example', " + secret + "}}}":                                                                                                                           "write an https URL without user, query and fragment",
		"{schedule: '0 * * * *', store: {s3: {bucket: abc, prefix: ../other, " + secret + "}}}":                                                                                                                                             "write one or more parts with '/' between them",
		"{schedule: '0 * * * *', store: {persistentVolumeClaim: {claimName: c}}, retention: {keepFor: 90000h}}":                                                                                                                             "write how long backups are kept",
		"{schedule: '0 * * * *', store: {persistentVolumeClaim: {claimName: c}}, verify: Sometimes}":                                                                                                                                        "verify: Unsupported value",
		"{schedule: '0 * * * *', store: {azure: {container: abc, account: storage, " + secret + "}}, retention: {keepLast: 3, keepFor: 48h}}":                                                                                               "",
		"{schedule: '30 3 * * mon-fri', timeZone: Europe/Berlin, store: {gcs: {bucket: abc, prefix: prod/x}, serviceAccountName: saver}, verify: Never}":                                                                                    "",
		"{schedule: '0 * * * *', store: {s3: {bucket: abc, endpoint: 'https://s3.example:9000', region: eu, caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=, " + secret + "}, }, suspend: true}": "",
	} {
		r := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: s.namespace}}
		r.Spec = operatorv1alpha1.ClusterRegistrySpec{Version: "v0.2.0", Mode: operatorv1alpha1.ModeIndependent, Etcd: operatorv1alpha1.Etcd{Replicas: 1}, Backup: &operatorv1alpha1.Backup{}}
		if err := yaml.UnmarshalStrict([]byte(spec), r.Spec.Backup); err != nil {
			t.Fatal(err)
		}
		err := s.Create(t.Context(), r, client.DryRunAll)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", spec, err, says)
		}
	}
	external := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: s.namespace}}
	external.Spec = operatorv1alpha1.ClusterRegistrySpec{Version: "v0.2.0", Mode: operatorv1alpha1.ModeIndependent, Etcd: s.external(),
		Backup: &operatorv1alpha1.Backup{Schedule: "0 * * * *", Store: operatorv1alpha1.BackupStore{PersistentVolumeClaim: &operatorv1alpha1.VolumeStore{ClaimName: "c"}}}}
	if err := s.Create(t.Context(), external, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "the operator takes no backups of an external etcd") {
		t.Errorf("an external etcd: %v", err)
	}

	unchanged := func(*operatorv1alpha1.ClusterRegistryBackup) {}
	if err := s.Create(t.Context(), s.backup("two.words", unchanged), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "metadata.name is the name of the backup in its store") {
		t.Errorf("a name with a dot: %v", err)
	}
	s.phase("early", operatorv1alpha1.BackupPending, "there is no ClusterRegistry fleet in this namespace") // which is the last that is written to it
	early := &operatorv1alpha1.ClusterRegistryBackup{}
	s.get("early", early)
	early.Spec.RegistryRef.Name = "other"
	if err := s.Update(t.Context(), early, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "a backup can't be changed") {
		t.Errorf("another registry: %v", err)
	}
}

package backups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/backup"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

var errKilled = errors.New("the operator was killed")

// backupWorld is a host cluster in which Jobs run as soon as the operator has reconciled.
type backupWorld struct {
	t   *testing.T
	raw client.WithWatch
	now time.Time
	// writes are how many there were in this reconcile, of which the one at the index kill
	// and all later ones fail: the operator is dead then.
	writes, kill int
	// created are how many Jobs there were, and jobs how many have run.
	created, jobs, reconciles int
	// old has the host cluster store no status.verifyRequest.
	old bool
	// taken is when those in the store were taken, by name.
	taken map[string]time.Time
	// saved are the backups in the store, as the helper names them; fails says of a command
	// how it ends, and removes is what is reported of old ones.
	saved   []string
	fails   map[string]string
	removes string
}

const neverKilled = 1 << 20

func newBackupWorld(t *testing.T, objects ...client.Object) *backupWorld {
	t.Helper()
	registry := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet", UID: "1"}}
	registry.Spec.Etcd.Replicas = 1
	registry.Spec.Backup = &operatorv1alpha1.Backup{Schedule: "0 * * * *", Store: operatorv1alpha1.BackupStore{S3: &operatorv1alpha1.S3Store{Bucket: "b", SecretRef: &operatorv1alpha1.LocalObjectReference{Name: "store"}}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "store"}}
	host := operandtest.Host(t, append(objects, registry, secret)...)
	w := &backupWorld{t: t, raw: host.Client.(client.WithWatch), now: time.Date(2026, 3, 1, 10, 20, 0, 0, time.UTC), kill: neverKilled, taken: map[string]time.Time{}}
	s := w.scope()
	if err := s.Identity.Write(t.Context(), &etcd.Record{InitialClusterState: "existing", Replicas: 1, CA: "ca", Identity: etcd.Identity{ClusterID: "cb9c4b520b9c4b52", Members: map[string]string{"fleet-etcd-0": "ff0c1f0c1f0c1f0c"}}}); err != nil {
		t.Fatal(err)
	}
	return w
}

// client counts writes, and fails them when the operator is dead. A Job can't be changed.
func (w *backupWorld) client() client.Client {
	count := func() error {
		w.writes++
		if w.writes > w.kill {
			return errKilled
		}
		return nil
	}
	jobs := meta.NewDefaultRESTMapper([]schema.GroupVersion{batchv1.SchemeGroupVersion})
	jobs.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
	return operandtest.Mapped{Client: interceptor.NewClient(w.raw, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := count(); err != nil {
				return err
			}
			object.SetUID(types.UID("uid-" + object.GetName()))
			object.SetCreationTimestamp(metav1.NewTime(w.now))
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := count(); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := count(); err != nil {
				return err
			}
			err := c.SubResource(sub).Patch(ctx, object, patch, options...)
			if b, is := object.(*operatorv1alpha1.ClusterRegistryBackup); err == nil && is && w.old && b.Status.VerifyRequest != "" {
				b.Status.VerifyRequest = ""
				return c.SubResource(sub).Update(ctx, b)
			}
			return err
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := count(); err != nil {
				return err
			}
			return c.Delete(ctx, object, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, configuration runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if err := count(); err != nil {
				return err
			}
			if object, is := configuration.(applied); is && object.GetKind() == "Job" {
				return w.applyJob(ctx, object)
			}
			return c.Apply(ctx, configuration, options...)
		},
	}), Kinds: jobs}
}

// applied is what is applied, as far as it matters for a Job.
type applied interface {
	GetKind() string
	GetAnnotations() map[string]string
	GetLabels() map[string]string
	SetResourceVersion(string)
}

// applyJob creates the Job with a UID, by which it is told from earlier ones, or refuses to
// change it. The client that is a fake does neither.
func (w *backupWorld) applyJob(ctx context.Context, object applied) error {
	job := &batchv1.Job{}
	err := w.raw.Get(ctx, client.ObjectKey{Namespace: "team", Name: "fleet-backup"}, job)
	switch {
	case apierrors.IsNotFound(err):
		w.created++
		job.ObjectMeta = metav1.ObjectMeta{Namespace: "team", Name: "fleet-backup", UID: types.UID(fmt.Sprint("job-", w.created)), Labels: object.GetLabels(), Annotations: object.GetAnnotations()}
		err = w.raw.Create(ctx, job)
	case job.Annotations[operatorv1alpha1.AnnotationBackup] != object.GetAnnotations()[operatorv1alpha1.AnnotationBackup]:
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "fleet-backup", nil)
	}
	object.SetResourceVersion(job.ResourceVersion)
	return err
}

// scope is one of a new reconcile: it knows what is stored, and nothing else.
func (w *backupWorld) scope() *Stage {
	w.t.Helper()
	registry := &operatorv1alpha1.ClusterRegistry{}
	if err := w.raw.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, registry); err != nil {
		w.t.Fatal(err)
	}
	operatorv1alpha1.SetDefaults(registry)
	c := w.client()
	s := &Stage{Pass: pass.New(&operand.Objects{HostCluster: operand.HostCluster{Client: c, Live: c, Applier: apply.New(c, c), Events: events.NewFakeRecorder(200)},
		Registry: registry, Before: *registry.Status.DeepCopy(), Now: w.now, Rendered: &render.Result{}}, pass.Found{}.Verdict)}
	s.Identity = identity.Read(w.t.Context(), s.Objects)
	return s
}

// reconcile does what a reconcile does about backups.
func (w *backupWorld) reconcile() *Stage {
	w.t.Helper()
	w.writes = 0
	s := w.scope()
	s.Observe(w.t.Context(), nil)
	s.Rendered = &render.Result{Stages: map[render.Stage][]*unstructured.Unstructured{}}
	if r := s.Found.Rendered(); r.Step != "" {
		job := operandtest.Rendered(batchv1.SchemeGroupVersion.WithKind("Job"), "fleet-backup")
		job.SetLabels(map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: "fleet"})
		job.SetAnnotations(map[string]string{operatorv1alpha1.AnnotationBackup: r.Task})
		s.Rendered.Stages[render.StageBackup] = append(s.Rendered.Stages[render.StageBackup], job)
	}
	s.Run(w.t.Context())
	before := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet"}, Status: s.Before}
	after := before.DeepCopy()
	after.Status = s.Registry.Status
	if err := s.Client.Status().Patch(w.t.Context(), after, client.MergeFrom(before)); err != nil && !errors.Is(err, errKilled) {
		w.t.Fatal(err)
	}
	return s
}

// run has the Job do what it is to do.
func (w *backupWorld) run() {
	w.t.Helper()
	job := &batchv1.Job{}
	if err := w.raw.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet-backup"}, job); err != nil || len(job.Status.Conditions) > 0 {
		return
	}
	w.jobs++
	step, rest, _ := strings.Cut(job.Annotations[operatorv1alpha1.AnnotationBackup], " ")
	name, _, _ := strings.Cut(rest, " ")
	if w.taken[name].IsZero() {
		w.taken[name] = w.now
	}
	report, exit := fmt.Sprintf(`{"name":%q,"revision":42,"bytes":7,"time":%q,"location":"s3://b/one/%s/manifest.json"`, name, w.taken[name].UTC().Format(time.RFC3339), name), int32(0)
	message := report + "}"
	switch how := w.fails[step]; {
	case how != "":
		_, err := fmt.Sscanf(how, "%d", &exit)
		if err != nil {
			w.t.Fatal(err)
		}
		message = how
	case step == "save":
		w.saved = append(w.saved, name)
	case step == "verify":
		message = report + `,"verifiedTime":"2026-03-01T10:01:00Z"}`
	case step == "prune":
		message = cmp.Or(w.removes, "{}")
	case step == "delete":
		message = "{}"
	}
	condition := batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now)}
	if exit != 0 {
		condition.Type = batchv1.JobFailed
	}
	job.Status.Conditions = []batchv1.JobCondition{condition}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: fmt.Sprint("pod-", w.jobs), Labels: map[string]string{
		operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelComponent: operand.ComponentBackup, batchv1.ControllerUidLabel: string(job.UID)}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: backup.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, Message: message}}}}
	if err := errors.Join(w.raw.Status().Update(w.t.Context(), job), w.raw.Create(w.t.Context(), pod.DeepCopy())); err != nil {
		w.t.Fatal(err)
	}
	if err := w.raw.Status().Update(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
}

// settle reconciles until nothing changes any more, and returns the last scope.
func (w *backupWorld) settle() *Stage {
	w.t.Helper()
	var s *Stage
	for quiet := 0; quiet < 2; {
		jobs := w.jobs
		s = w.reconcile()
		w.run()
		if quiet++; w.writes > 1 || w.jobs > jobs { // one is the status, by a patch that changes nothing
			quiet = 0
		}
		if w.reconciles++; w.reconciles > 400 {
			w.t.Fatal("it is never steady")
		}
	}
	return s
}

// phases are those of all objects, by name.
func (w *backupWorld) phases() string {
	w.t.Helper()
	list := &operatorv1alpha1.ClusterRegistryBackupList{}
	if err := w.raw.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, b := range list.Items {
		out = append(out, b.Name+" "+string(b.Status.Phase))
	}
	return strings.Join(out, ", ")
}

// asked is a backup that a person has asked for.
func asked(name string) *operatorv1alpha1.ClusterRegistryBackup {
	return &operatorv1alpha1.ClusterRegistryBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name)},
		Spec: operatorv1alpha1.ClusterRegistryBackupSpec{RegistryRef: operatorv1alpha1.LocalObjectReference{Name: "fleet"}, DeletionPolicy: operatorv1alpha1.BackupDeletionPolicyRetain}}
}

const good = "fleet-20260301-1000 Completed, mine Completed"

// TestBackups goes from an object that a person has made, and one by the schedule, to two
// that are verified, and on to a steady registry.
func TestBackups(t *testing.T) {
	w := newBackupWorld(t, asked("mine"))
	s := w.settle()
	v, status := s.Found.Verdict, s.Registry.Status.Backup
	if got := w.phases(); got != good || !v.Complete() || v.Reason != operatorv1alpha1.ReasonBackedUp || len(w.saved) != 2 {
		t.Errorf("%s (%v): %+v", got, w.saved, v)
	}
	if status.Lineage == "" || status.Lineage != s.Identity.Record.Lineage || status.LastSuccess == nil || status.NextRun.UTC().Hour() != 11 || status.LastScheduleTime.UTC().Hour() != 10 || status.LastSuccess.VerifiedTime == nil || status.Pruned != "mine" { // the last one, at the same time
		t.Errorf("the status is %+v", status)
	}
	lineage := status.Lineage
	w.now = w.now.Add(time.Hour)
	if s = w.settle(); !strings.Contains(w.phases(), "fleet-20260301-1100 Completed") || s.Registry.Status.Backup.Lineage != lineage {
		t.Errorf("an hour later there are %s in %s", w.phases(), s.Registry.Status.Backup.Lineage)
	}
	recovered := *s.Identity.Record
	recovered.Lineage = "0b9c4b52-7d1f-4b6e-9a51-2f0d7f0c9a11"
	if err := s.Identity.Write(t.Context(), &recovered); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Minute)
	if s = w.settle(); !strings.Contains(w.phases(), "fleet-20260301-1100-0b9c4b52 Completed") || s.Registry.Status.Backup.Lineage != recovered.Lineage || s.Registry.Status.Backup.LastSuccess == nil {
		t.Errorf("after etcd was recovered there are %s: %+v", w.phases(), s.Registry.Status.Backup)
	}
}

// TestBackupsKilled kills the operator at each write in turn, in each reconcile of a backup:
// it must come to the same end as one that was never killed, with no backup too many or too
// few. At last it is not killed, and the Job takes longer than the next reconcile.
func TestBackupsKilled(t *testing.T) {
	for round := range 16 {
		for write, killed := 0, true; killed; write++ {
			w := newBackupWorld(t, asked("mine"))
			for range round {
				w.reconcile()
				w.run()
			}
			w.kill = write
			w.reconcile()
			if killed = w.writes > write; !killed && write == 0 {
				t.Fatalf("reconcile %d writes nothing", round)
			}
			if w.kill = neverKilled; killed && write%2 == 0 {
				w.run() // or the next operator is faster than the Job
			}
			s := w.settle()
			if v := s.Found.Verdict; w.phases() != good || !v.Complete() {
				t.Fatalf("killed in reconcile %d at write %d: %s, %+v", round, write, w.phases(), v)
			}
		}
	}
}

// TestBackupsFail is about what a Job can end with.
func TestBackupsFail(t *testing.T) {
	for _, test := range []struct {
		reason string
		fails  map[string]string
		phase  operatorv1alpha1.BackupPhase
		want   string
		says   string
	}{
		{"the store is down", map[string]string{"save": "1 no route"}, operatorv1alpha1.BackupFailed, operatorv1alpha1.ReasonBackupFailed, "no route"},
		{"the store is down after that", map[string]string{"verify": "1 no route"}, operatorv1alpha1.BackupFailed, operatorv1alpha1.ReasonVerificationFailed, "could not be verified"},
		{"it is damaged", map[string]string{"verify": "65 another hash"}, operatorv1alpha1.BackupDamaged, operatorv1alpha1.ReasonVerificationFailed, "another hash"},
		{"old ones can't be removed", map[string]string{"prune": "1 no route"}, operatorv1alpha1.BackupCompleted, operatorv1alpha1.ReasonBackupsNotRemoved, "no route"},
	} {
		w := newBackupWorld(t)
		w.fails = test.fails
		s := w.settle()
		if v := s.Found.Verdict; w.phases() != "fleet-20260301-1000 "+string(test.phase) || v.Reason != test.want || !strings.Contains(v.Message, test.says) {
			t.Errorf("%s: %s, %+v", test.reason, w.phases(), v)
		}
		w.fails, w.now = nil, w.now.Add(2*time.Hour)
		if v := w.settle().Found.Verdict; !v.Complete() || !strings.Contains(w.phases(), "fleet-20260301-1200 Completed") || strings.Contains(w.phases(), "Failed") {
			t.Errorf("%s, and then it works: %s, %+v", test.reason, w.phases(), v)
		}
	}
}

// TestBackupsInTheWay is about objects of others, and about what is missing.
func TestBackupsInTheWay(t *testing.T) {
	other := asked("fleet-20260301-1000")
	other.Spec.RegistryRef.Name = "other"
	w := newBackupWorld(t, other)
	if v := w.settle().Found.Verdict; v.Complete() || v.Reason != operatorv1alpha1.ReasonBackupFailed || !strings.Contains(v.Message, "it is of ClusterRegistry other") || w.phases() != "fleet-20260301-1000 " {
		t.Errorf("the name is taken: %s, %+v", w.phases(), v)
	}

	w = newBackupWorld(t, asked("mine"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "store"}}
	if err := w.raw.Delete(t.Context(), secret.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if v := w.settle().Found.Verdict; v.Reason != operatorv1alpha1.ReasonStoreSecretMissing || w.phases() != "mine Pending" || w.jobs != 0 {
		t.Errorf("there is no Secret: %s, %d Jobs, %+v", w.phases(), w.jobs, v)
	}
	if err := w.raw.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if w.settle(); w.phases() != good {
		t.Errorf("then there is one: %s", w.phases())
	}
}

// TestBackupsBlocked is about registries that can't be backed up.
func TestBackupsBlocked(t *testing.T) {
	w := newBackupWorld(t)
	for reason, change := range map[string]func(*Stage){
		"external": func(s *Stage) { s.Registry.Spec.Etcd.External = &operatorv1alpha1.ExternalEtcd{} },
	} {
		s := w.scope()
		change(s)
		if v := s.backupsBlocked(t.Context()); v.Reason != operatorv1alpha1.ReasonBackupUnsupported || !strings.Contains(v.Message, reason) {
			t.Errorf("%s: %+v", reason, v)
		}
	}
	s := w.scope()
	s.Registry.Spec.Backup.Schedule = "0 2 30 2 *"
	s.Observe(t.Context(), nil)
	s.Run(t.Context())
	if v := s.Found.Verdict; v.Reason != operatorv1alpha1.ReasonScheduleInvalid || !strings.Contains(v.Message, "spec.backup.schedule") {
		t.Errorf("a day that there never is: %+v", v)
	}
	// A read-only pass writes nothing.
	s = w.scope()
	s.Freeze("spec.paused is false")
	w.kill = 0
	if s.Run(t.Context()); s.Found.Err != nil {
		t.Errorf("read-only: %+v", s.Found.Verdict)
	}
}

// TestVerifyRequestNotStored has a CustomResourceDefinition of an earlier release: what to do is
// said, and backups are taken all the same.
func TestVerifyRequestNotStored(t *testing.T) {
	w := newBackupWorld(t, asked("mine"))
	w.settle()
	b := &operatorv1alpha1.ClusterRegistryBackup{}
	if err := w.raw.Get(t.Context(), client.ObjectKeyFromObject(asked("mine")), b); err != nil {
		t.Fatal(err)
	}
	b.Annotations = map[string]string{operatorv1alpha1.AnnotationVerify: "1"}
	if err := w.raw.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w.old = true
	var v verdict.Verdict
	for i := 0; i < 10 && v.Err == nil; i++ {
		v = w.reconcile().Found.Verdict
		w.run()
	}
	if v.Err == nil || !strings.Contains(v.Err.Error(), "CustomResourceDefinition clusterregistrybackups.operator.clusterregistry.io") {
		t.Fatalf("it says %+v", v)
	}
	w.now = w.now.Add(time.Hour)
	for i := 0; i < 20 && !strings.Contains(w.phases(), "fleet-20260301-1100 Completed"); i++ {
		w.reconcile()
		w.run()
	}
	if !strings.Contains(w.phases(), "fleet-20260301-1100 Completed") {
		t.Errorf("then there is no backup: %s", w.phases())
	}
	w.old = false
	if v = w.settle().Found.Verdict; !v.Complete() || v.Err != nil {
		t.Errorf("with the right one, it says %+v", v)
	}
}

// TestBackupsOnOwnVolume refuses a store that a deletion of the registry removes.
func TestBackupsOnOwnVolume(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		says   string
	}{
		"fleet-snapshots": {map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy}, "PersistentVolumeClaim fleet-snapshots, which spec.backup.store names: it is a volume of the registry itself: name another one"},
		"backups":         {nil, ""},
	} {
		w := newBackupWorld(t, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: test.labels}})
		s := w.scope()
		s.Registry.Spec.Backup.Store = operatorv1alpha1.BackupStore{PersistentVolumeClaim: &operatorv1alpha1.VolumeStore{ClaimName: name}}
		if v := s.backupsBlocked(t.Context()); v.Complete() != (test.says == "") || !strings.Contains(v.Message, test.says) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestBackupContent deletes objects with their content, with a store that does so and one
// that is down.
func TestBackupContent(t *testing.T) {
	for fails, wait := range map[string]time.Duration{"": 0, "1 no route": 11 * time.Minute} {
		mine := asked("mine")
		mine.Spec.DeletionPolicy = operatorv1alpha1.BackupDeletionPolicyDelete
		w := newBackupWorld(t, mine)
		w.settle()
		w.fails = map[string]string{"delete": fails}
		if err := w.raw.Delete(t.Context(), asked("mine")); err != nil {
			t.Fatal(err)
		}
		w.now = time.Now() // by which the host cluster deletes
		before := w.jobs
		if w.reconcile(); !strings.Contains(w.phases(), "mine") {
			t.Fatalf("%q: it is gone before its content is", fails)
		}
		w.run()
		w.now = w.now.Add(wait)
		if w.settle(); strings.Contains(w.phases(), "mine") || w.jobs == before {
			t.Errorf("%q: there is %s after %d Jobs", fails, w.phases(), w.jobs-before)
		}
	}
}

// TestBackupsSettled is about backups whose registry is gone, or has no store any more: what
// was begun has failed, what a person asked for waits, and nothing holds a deletion.
func TestBackupsSettled(t *testing.T) {
	saving, held, ended := asked("saving"), asked("held"), asked("ended")
	saving.Status.Phase, ended.Status.Phase = operatorv1alpha1.BackupSaving, operatorv1alpha1.BackupCompleted
	held.Finalizers = []string{operatorv1alpha1.FinalizerBackup}
	held.Status.Location, held.Status.Name = "s3://b/one/held", "held"
	w := newBackupWorld(t, asked("waits"), saving, held, ended)
	if err := w.raw.Delete(t.Context(), asked("held")); err != nil {
		t.Fatal(err)
	}
	s := w.scope()
	recorder := events.NewFakeRecorder(10)
	host, kind := operand.HostCluster{Client: s.Client, Events: recorder}, &Kind{}
	for range 2 {
		if _, err := kind.Settle(t.Context(), host, client.ObjectKey{Namespace: "team", Name: "fleet"}, "there is no ClusterRegistry fleet in this namespace"); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.phases(); got != "ended Completed, saving Failed, waits Pending" {
		t.Errorf("there are %s", got)
	}
	if len(recorder.Events) != 1 || !strings.Contains(<-recorder.Events, "s3://b/one/held") {
		t.Error("no event says where the content is")
	}
}

// TestManyAsked has more backups asked for than a registry may have: one by the schedule waits for
// one of them at most, those that are too many fail, and in the end there are not more than that.
func TestManyAsked(t *testing.T) {
	var many []client.Object
	for i := range backup.Most + 20 {
		b := asked(fmt.Sprintf("mine-%03d", i))
		b.CreationTimestamp = metav1.NewTime(time.Date(2026, 3, 1, 9, 0, i, 0, time.UTC))
		many = append(many, b)
	}
	w := newBackupWorld(t, many...)
	refused := &operatorv1alpha1.ClusterRegistryBackup{}
	for !strings.Contains(w.phases(), "fleet-20260301-1000 Completed") {
		w.reconcile()
		w.run()
		if len(w.saved) > 2 {
			t.Fatalf("%v were taken before the one that is scheduled", w.saved)
		}
		if refused.Status.Phase != "" {
			continue
		}
		if err := w.raw.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: fmt.Sprintf("mine-%03d", backup.MostAsked)}, refused); err != nil {
			t.Fatal(err)
		}
	}
	if refused.Status.Phase != operatorv1alpha1.BackupFailed || !strings.Contains(refused.Status.Message, "90 backups of this registry wait already") {
		t.Errorf("one too many is %+v", refused.Status)
	}
	s := w.reconcile()
	if n := len(s.Found.All); n > backup.Most || s.Registry.Status.Backup.LastFailure != nil || !s.Found.Complete() {
		t.Errorf("then there are %d, %+v", n, s.Registry.Status.Backup)
	}
}

// TestStoreDownForAnHour has the store go away between two backups of a registry that is backed up
// every ten minutes, and come back after an hour. As long as backups fail, each minute says so,
// which is what the alert ClusterRegistryBackupFailed waits half an hour for; few objects are left
// of it, and what was saved before stays. Then the next one succeeds.
func TestStoreDownForAnHour(t *testing.T) {
	w := newBackupWorld(t)
	registry := &operatorv1alpha1.ClusterRegistry{}
	if err := w.raw.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, registry); err != nil {
		t.Fatal(err)
	}
	registry.Spec.Backup.Schedule = "*/10 * * * *"
	if err := w.raw.Update(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Truncate(10 * time.Minute)
	before := w.settle().Registry.Status.Backup.LastSuccess
	w.fails = map[string]string{"save": "1 no route to store"}
	for minute := 1; minute <= 60; minute++ {
		w.now, w.reconciles = w.now.Add(time.Minute), 0
		s := w.settle()
		v, status := s.Found.Verdict, s.Registry.Status.Backup
		switch {
		case minute < 10:
			if !v.Complete() {
				t.Fatalf("after %d minutes none has failed, and it says %+v", minute, v)
			}
		case v.Complete() || v.Reason != operatorv1alpha1.ReasonBackupFailed || !strings.Contains(v.Message, "no route to store") || !strings.Contains(v.Message, before.Name):
			t.Fatalf("after %d minutes it says %+v", minute, v)
		case status.LastSuccess.Name != before.Name || status.NextRun == nil || status.NextRun.Sub(w.now) > 10*time.Minute || len(s.Found.All) > 5:
			t.Fatalf("after %d minutes the status is %+v, with %s", minute, status, w.phases())
		}
	}
	w.fails, w.now, w.reconciles = nil, w.now.Add(10*time.Minute), 0
	s := w.settle()
	if v := s.Found.Verdict; !v.Complete() || strings.Contains(w.phases(), "Failed") || !s.Registry.Status.Backup.LastSuccess.Time.After(before.Time.Time) {
		t.Errorf("when it is back: %s, %+v", w.phases(), v)
	}
}

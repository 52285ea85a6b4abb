package restore

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
	"github.com/clusterregistry/operator/operator/version"
)

// releases are those that the plugin of the tests knows.
func releases() ([]version.Release, error) {
	release := func(v, etcd string, from ...string) version.Release {
		r := version.Release{Version: v, UpgradesFrom: from, Members: version.Members{Etcd: etcd}}
		r.Host.From, r.Host.To = "1.34", "1.37"
		return r
	}
	return []version.Release{release("v0.4.0", "v3.7.3"), release("v0.5.0", "v3.7.4", "v0.4.0"), release("v0.6.0", "v3.7.4", "v0.5.0")}, nil
}

func at(age time.Duration) *metav1.Time {
	out := metav1.NewTime(commandtest.Now.Add(-age))
	return &out
}

// fleet returns the registry that was saved.
func fleet(changes ...func(*v1alpha1.ClusterRegistry)) *v1alpha1.ClusterRegistry {
	out := &v1alpha1.ClusterRegistry{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterRegistry"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: "fleet"},
		Status:     v1alpha1.ClusterRegistryStatus{Version: "v0.5.0", HostVersion: "v1.37.1", Backup: &v1alpha1.BackupStatus{Lineage: "one"}},
	}
	out.Spec.Mode, out.Spec.Etcd.Replicas = v1alpha1.ModeIndependent, 3
	out.Spec.Backup = &v1alpha1.Backup{Schedule: "0 * * * *", Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups", SecretRef: &v1alpha1.LocalObjectReference{Name: "store"}}}}
	for _, change := range changes {
		change(out)
	}
	return out
}

// saved returns a backup of it that was taken some time ago.
func saved(name string, age time.Duration, changes ...func(*v1alpha1.ClusterRegistryBackup)) *v1alpha1.ClusterRegistryBackup {
	out := &v1alpha1.ClusterRegistryBackup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterRegistryBackup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: name, CreationTimestamp: *at(age)},
		Spec:       v1alpha1.ClusterRegistryBackupSpec{RegistryRef: v1alpha1.LocalObjectReference{Name: "fleet"}},
		Status: v1alpha1.ClusterRegistryBackupStatus{Phase: v1alpha1.BackupCompleted, Name: name, Location: "s3://backups/one/" + name, Lineage: "one", Revision: 42, Bytes: 7000,
			Release: "v0.5.0", EtcdVersion: "3.7.4", TakenTime: at(age), VerifiedTime: at(age), SHA256: "ab"},
	}
	for _, change := range changes {
		change(out)
	}
	return out
}

type b = v1alpha1.ClusterRegistryBackup

func in(phase v1alpha1.BackupPhase) func(*b) { return func(b *b) { b.Status.Phase = phase } }

func skipped(as string) func(*b) {
	return func(b *b) { b.Status.Phase, b.Status.Name = v1alpha1.BackupSkipped, as }
}

func encrypted(b *b) { b.Status.EncryptionKeys = []string{"aescbc/a"} }

func inClaim(r *v1alpha1.ClusterRegistry) {
	r.Spec.Backup.Store = v1alpha1.BackupStore{PersistentVolumeClaim: &v1alpha1.VolumeStore{ClaimName: "copies"}}
}

// TestPlan is about what a person is told before they restore: a plan that fits, what decides
// that is not known, and what is refused, as the operator would.
func TestPlan(t *testing.T) {
	for _, test := range []struct {
		reason   string
		registry *v1alpha1.ClusterRegistry
		backups  []*b
		args     string
		code     int
		says     []string
	}{
		{reason: "it fits", backups: []*b{saved("one", time.Hour)}, args: "one",
			says: []string{"# OK: backup registries/one can be restored as ClusterRegistry registries/fleet-restored.", "Lost: what was written after 2026-11-23T11:00:00Z, 60 min ago.", "Needed first: Secret store in namespace registries", "version: v0.5.0", "backupRef:\n      name: one\n", "does not reach stores"}},
		{reason: "elsewhere", backups: []*b{saved("one", time.Hour)}, args: "one --into rehearsal/fleet",
			says: []string{"Needed first: namespace rehearsal.", "Needed first: Secret store in namespace rehearsal", "name: one\n      namespace: registries\n"}},
		{reason: "in another host cluster", backups: []*b{saved("one", time.Hour)}, args: "one --by-store", says: []string{"restoreFrom:\n    lineage: one\n    name: one\n    store:\n      s3:\n        bucket: backups"}},
		{reason: "nothing had changed until later", backups: []*b{saved("one", 3*time.Hour), saved("two", time.Hour, skipped("one"))}, args: "one", says: []string{"nothing had changed until 2026-11-23T11:00:00Z, when the next backup was due"}},
		{reason: "there is a newer one", backups: []*b{saved("one", 3*time.Hour), saved("two", 2*time.Hour), saved("three", time.Hour), saved("bad", 1, in(v1alpha1.BackupDamaged))}, args: "one", says: []string{"; backup three, taken at 2026-11-23T11:00:00Z, has more of it."}},
		{reason: "the latest", backups: []*b{saved("one", 3*time.Hour), saved("two", time.Hour), saved("bad", 1, in(v1alpha1.BackupDamaged)), saved("of-another", 1, func(b *b) { b.Status.Lineage = "two" })}, args: "--registry fleet --latest",
			says: []string{"OK: the newest backup of lineage one can be restored", "s3://backups/one/two", "whether the store has a newer backup", "latest: true"}},
		{reason: "before an accident", backups: []*b{saved("one", 3*time.Hour), saved("two", time.Hour)}, args: "--registry fleet --before 2026-11-23T10:00:00Z", says: []string{"s3://backups/one/one", "before: \"2026-11-23T10:00:00Z\""}},
		{reason: "one that the store alone has", args: "--registry fleet --name gone --into elsewhere/fleet", code: 4,
			says: []string{"# ATTENTION: backup gone of lineage one has no ClusterRegistryBackup here", "when that was is not known here", "the encryption keys of its time", "name: gone"}},
		{reason: "none that fits is known", backups: []*b{saved("one", time.Hour)}, args: "--registry fleet --before 2020-01-01T00:00:00Z", code: 4, says: []string{"no ClusterRegistryBackup is of one that fits"}},
		{reason: "it was never verified", backups: []*b{saved("one", time.Hour, func(b *b) { b.Status.VerifiedTime = nil })}, args: "one", code: 4, says: []string{"was never verified", "backup verify one", "Verified   never"}},
		{reason: "it is encrypted", registry: fleet(func(r *v1alpha1.ClusterRegistry) {
			r.Spec.Server.Encryption = &v1alpha1.Encryption{SecretRef: v1alpha1.EncryptionSecretSelector{Name: "keys", Key: "e"}}
			r.Status.Encryption = &v1alpha1.EncryptionStatus{Writes: "aescbc/b", Reads: []string{"aescbc/b", "aescbc/a"}}
		}), backups: []*b{saved("one", time.Hour, encrypted)}, args: "one", says: []string{"# OK", "Needed first: the encryption keys aescbc/a, in the Secret", "does not read Secrets", "encryption:\n      secretRef:\n        key: e\n        name: keys"}},
		{reason: "its key is gone", backups: []*b{saved("one", time.Hour, encrypted)}, args: "one", code: 4, says: []string{"# ATTENTION", "if its encryption keys are found", "a copy of aescbc/a, which the servers of registries/fleet do not have", "name: fleet-restored-encryption"}},
		{reason: "an aggregated registry", registry: fleet(func(r *v1alpha1.ClusterRegistry) { r.Spec.Mode = v1alpha1.ModeAggregated }), backups: []*b{saved("one", time.Hour)}, args: "one", says: []string{"mode: Independent", "write Aggregated in another host cluster"}},
		{reason: "it is upgraded as it comes up", backups: []*b{saved("one", time.Hour)}, args: "one --version v0.6.0", says: []string{"version: v0.6.0"}},

		{reason: "an older release", backups: []*b{saved("one", time.Hour)}, args: "one --version v0.4.0", code: 3, says: []string{"backup one can't be restored here: it was taken from release v0.5.0, and spec.version is v0.4.0"}},
		{reason: "a newer etcd", backups: []*b{saved("one", time.Hour, func(b *b) { b.Status.EtcdVersion = "3.8.0" })}, args: "one", code: 3, says: []string{"runs the older etcd v3.7.4"}},
		{reason: "a release of another plugin", backups: []*b{saved("one", time.Hour, func(b *b) { b.Status.Release = "v0.9.0" })}, args: "one", code: 3, says: []string{`taken from release "v0.9.0", which this plugin does not know`}},
		{reason: "another release of another plugin", backups: []*b{saved("one", time.Hour)}, args: "one --version v0.9.0", code: 3, says: []string{"this plugin does not know release v0.9.0"}},
		{reason: "too large", backups: []*b{saved("one", time.Hour, func(b *b) { b.Status.Bytes = 8 << 30 })}, args: "one", code: 3, says: []string{"spec.etcd.storage.size is 8Gi: set that to at least"}},
		{reason: "damaged", backups: []*b{saved("one", time.Hour, in(v1alpha1.BackupDamaged))}, args: "one", code: 3, says: []string{"ClusterRegistryBackup registries/one is damaged: plan with another backup"}},
		{reason: "damaged, by its name in the store", backups: []*b{saved("one", time.Hour, in(v1alpha1.BackupDamaged))}, args: "--registry fleet --name one", code: 3, says: []string{"backup one is damaged"}},
		{reason: "not complete", backups: []*b{saved("one", time.Hour, in(v1alpha1.BackupSaving))}, args: "one", code: 3, says: []string{"ClusterRegistryBackup registries/one, which is not complete"}},
		{reason: "the registry is gone", registry: fleet(func(r *v1alpha1.ClusterRegistry) { r.Name = "other" }), backups: []*b{saved("one", time.Hour)}, args: "one", code: 3, says: []string{"is gone or has no spec.backup any more: plan with restoreFrom.store, lineage one and name one (the backup is at s3://backups/one/one)"}},
		{reason: "a claim of another namespace", registry: fleet(inClaim), backups: []*b{saved("one", time.Hour)}, args: "one --into rehearsal/fleet", code: 3, says: []string{"PersistentVolumeClaim copies, which pods of its own namespace alone can mount"}},
		{reason: "a claim of another namespace, by its registry", registry: fleet(inClaim), backups: []*b{saved("one", time.Hour)}, args: "--registry fleet --latest --into rehearsal/fleet", code: 3, says: []string{"have --into name a registry in namespace registries"}},
		{reason: "a claim", registry: fleet(inClaim), backups: []*b{saved("one", time.Hour)}, args: "one", says: []string{"Needed first: PersistentVolumeClaim copies in namespace registries"}},
		{reason: "the name is taken", backups: []*b{saved("one", time.Hour)}, args: "one --into fleet", code: 3, says: []string{"there is a ClusterRegistry registries/fleet, and a registry is restored once"}},
		{reason: "no store", registry: fleet(func(r *v1alpha1.ClusterRegistry) { r.Spec.Backup = nil }), args: "--registry fleet --latest", code: 3, says: []string{"registries/fleet has no spec.backup"}},
		{reason: "no backup yet", registry: fleet(func(r *v1alpha1.ClusterRegistry) { r.Status.Backup = nil }), args: "--registry fleet --latest", code: 3, says: []string{"no backup of registries/fleet has been taken"}},

		{reason: "nothing is named", code: 2, says: []string{"say which backup"}},
		{reason: "too much is named", args: "one --latest", code: 2, says: []string{"name either a ClusterRegistryBackup, or a registry"}},
		{reason: "no way is named", args: "--registry fleet", code: 2, says: []string{"use exactly one of --latest, --before and --name"}},
		{reason: "no time", args: "--registry fleet --before yesterday", code: 2, says: []string{"--before=yesterday: write a time such as"}},
		{reason: "no name", args: "one --into /fleet", code: 2, says: []string{"--into=/fleet: write NAME or NAMESPACE/NAME"}},
		{reason: "no such backup", args: "none", code: 2, says: []string{`there is no ClusterRegistryBackup "none"`}},
	} {
		text, code, env := run(t, test.registry, test.backups, strings.Fields(test.args)...)
		if code != test.code {
			t.Errorf("%s: it exits with %d, want %d: %s", test.reason, code, test.code, text)
		}
		for _, want := range test.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: it lacks %q:\n%s", test.reason, want, text)
			}
		}
		for _, action := range env.Objects.Actions() {
			if action.GetVerb() != "list" {
				t.Errorf("%s: a plan asks for %s", test.reason, action.GetVerb())
			}
		}
	}
}

// run runs the command, and returns all that it prints.
func run(t *testing.T, registry *v1alpha1.ClusterRegistry, backups []*b, args ...string) (string, int, *commandtest.Env) {
	t.Helper()
	if registry == nil {
		registry = fleet()
	}
	objects := []runtime.Object{registry}
	for _, b := range backups {
		objects = append(objects, b)
	}
	env := commandtest.New(t).WithObjects(t, objects...)
	p := &planner{env: env.Env, releases: releases}
	text, code := env.Run(t, p.command(), args...)
	return env.Stdout.String() + text, code, env
}

// TestManifest reads what is printed as a ClusterRegistry.
func TestManifest(t *testing.T) {
	text, _, _ := run(t, nil, []*b{saved("one", time.Hour)}, "one", "--into", "rehearsal/fleet")
	var got v1alpha1.ClusterRegistry
	if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	want := v1alpha1.RestoreFrom{BackupRef: &v1alpha1.BackupReference{Name: "one", Namespace: "registries"}}
	if got.Namespace != "rehearsal" || got.Name != "fleet" || got.Spec.Etcd.Replicas != 3 || got.Spec.RestoreFrom == nil || *got.Spec.RestoreFrom.BackupRef != *want.BackupRef {
		t.Errorf("the manifest is %+v", got)
	}
}

// TestOutput expects for programs what people are told.
func TestOutput(t *testing.T) {
	text, _, _ := run(t, nil, []*b{saved("one", time.Hour)}, "one", "-o", "json")
	var got Plan
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if got.Attention || got.Name != "fleet-restored" || got.Backup.Revision != 42 || len(got.Lost)*len(got.Needed)*len(got.Unknown)*len(got.Notes) == 0 || got.Manifest["kind"] != "ClusterRegistry" {
		t.Errorf("the plan is %+v", got)
	}
}

// TestForbidden says what could not be seen, and plans all the same.
func TestForbidden(t *testing.T) {
	env := commandtest.New(t).WithObjects(t, fleet(), saved("one", time.Hour))
	env.Objects.PrependReactor("list", "clusterregistries", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() == "rehearsal" {
			return true, nil, apierrors.NewForbidden(v1alpha1.SchemeGroupVersion.WithResource("clusterregistries").GroupResource(), "", errors.New("no"))
		}
		return false, nil, nil
	})
	_, code := env.Run(t, (&planner{env: env.Env, releases: releases}).command(), "one", "--into", "rehearsal/fleet")
	lines := strings.Split(env.Stdout.String(), "\n")
	if code != 4 || !slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "# Not known here: whether there is a ClusterRegistry rehearsal/fleet: ")
	}) {
		t.Errorf("it exits with %d:\n%s", code, env.Stdout)
	}
}

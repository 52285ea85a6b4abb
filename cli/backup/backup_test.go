package backup

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// fleet returns a registry with backups.
func fleet(changes ...func(*v1alpha1.ClusterRegistry)) *v1alpha1.ClusterRegistry {
	out := &v1alpha1.ClusterRegistry{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterRegistry"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: "fleet"},
		Spec:       v1alpha1.ClusterRegistrySpec{Backup: &v1alpha1.Backup{Schedule: "0 * * * *"}},
		Status: v1alpha1.ClusterRegistryStatus{Backup: &v1alpha1.BackupStatus{Lineage: "one"},
			Conditions: []metav1.Condition{{Type: "BackupReady", Status: "True", Reason: "BackedUp", Message: "all is well"}}},
	}
	for _, change := range changes {
		change(out)
	}
	return out
}

// at is a time before that of the tests.
func at(age time.Duration) *metav1.Time {
	out := metav1.NewTime(commandtest.Now.Add(-age))
	return &out
}

// saved returns a backup that is in its store and verified.
func saved(name string, changes ...func(*v1alpha1.ClusterRegistryBackup)) *v1alpha1.ClusterRegistryBackup {
	out := &v1alpha1.ClusterRegistryBackup{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterRegistryBackup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: name, UID: "uid", CreationTimestamp: *at(time.Hour)},
		Spec:       v1alpha1.ClusterRegistryBackupSpec{RegistryRef: v1alpha1.LocalObjectReference{Name: "fleet"}},
		Status: v1alpha1.ClusterRegistryBackupStatus{Phase: "Completed", Name: name, Location: "s3://b/one/" + name, Lineage: "one", Revision: 42, Bytes: 7000,
			TakenTime: at(time.Hour), VerifiedTime: at(59 * time.Minute), CompletionTime: at(59 * time.Minute)},
	}
	for _, change := range changes {
		change(out)
	}
	return out
}

func in(phase v1alpha1.BackupPhase, message string) func(*v1alpha1.ClusterRegistryBackup) {
	return func(b *v1alpha1.ClusterRegistryBackup) {
		b.Status = v1alpha1.ClusterRegistryBackupStatus{Phase: phase, Message: message}
	}
}

func skipped(b *v1alpha1.ClusterRegistryBackup) {
	b.Status.Phase, b.Status.Name, b.Status.Location = "Skipped", "earlier", "s3://b/one/earlier"
}

// TestCreate expects the object that is asked for, and why there is none where there can't be
// one.
func TestCreate(t *testing.T) {
	for _, test := range []struct {
		reason   string
		registry *v1alpha1.ClusterRegistry
		args     string
		code     int
		text     string
		made     string
		note     string
	}{
		{reason: "a name by the time", registry: fleet(), args: "fleet", made: "fleet-20261123-120000 fleet Retain Manual"},
		{reason: "a name and a policy", registry: fleet(), args: "--name mine --deletion-policy Delete", made: "mine fleet Delete Manual"},
		{reason: "a dry run", registry: fleet(), args: "--dry-run=client"},
		{reason: "no store", registry: fleet(func(r *v1alpha1.ClusterRegistry) { r.Spec.Backup = nil }), code: 3, text: "no backup can be taken: registries/fleet has no spec.backup, which names the store: set it first"},
		{reason: "an external etcd", registry: fleet(func(r *v1alpha1.ClusterRegistry) { r.Spec.Etcd.External = &v1alpha1.ExternalEtcd{} }), code: 3, text: "no backup can be taken: the etcd of registries/fleet is external: save it with the tools that it is run with, such as etcdctl snapshot save"},
		{reason: "a registry that goes", registry: fleet(func(r *v1alpha1.ClusterRegistry) { r.DeletionTimestamp, r.Finalizers = at(0), []string{"f"} }), code: 3, text: "no backup can be taken: registries/fleet is being deleted"},
		{reason: "a policy that is none", registry: fleet(), args: "--deletion-policy=Snapshot", code: 2, text: "--deletion-policy=Snapshot: use Retain or Delete"},
		{reason: "a name that is taken", registry: fleet(), args: "--name old", code: 3, text: "there is a ClusterRegistryBackup registries/old already: choose another --name"},
		{reason: "backups that fail", registry: fleet(func(r *v1alpha1.ClusterRegistry) { r.Status.Conditions[0].Status = "False" }), made: "fleet-20261123-120000 fleet Retain Manual", note: "note: BackupReady is False: BackedUp: all is well"},
		{reason: "a pause", registry: fleet(func(r *v1alpha1.ClusterRegistry) { r.Spec.Paused = true }), made: "fleet-20261123-120000 fleet Retain Manual", note: "note: spec.paused is true, and the operator takes no backup until it is false"},
	} {
		env := commandtest.New(t).WithObjects(t, test.registry, saved("old"))
		text, code := env.Run(t, NewCreate(env.Env), strings.Fields(test.args)...)
		if text != test.text || code != test.code || !strings.Contains(env.Stderr.String(), test.note) {
			t.Errorf("%s: %d, %q, %s", test.reason, code, text, env.Stderr)
		}
		made := ""
		for _, action := range env.Objects.Actions() {
			if create, is := action.(clienttesting.CreateAction); is && code == 0 {
				b := &v1alpha1.ClusterRegistryBackup{}
				if err := decode(create.GetObject().(*unstructured.Unstructured), b); err != nil {
					t.Fatal(err)
				}
				made = strings.Join([]string{b.Name, b.Spec.RegistryRef.Name, string(b.Spec.DeletionPolicy), b.Annotations[v1alpha1.AnnotationBackupReason]}, " ")
			}
		}
		if made != test.made {
			t.Errorf("%s: it creates %q, want %q", test.reason, made, test.made)
		}
	}
}

// becomes has each watch see the next state, and none after the last one.
func becomes(t *testing.T, env *commandtest.Env, states ...*v1alpha1.ClusterRegistryBackup) {
	t.Helper()
	env.Objects.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		if len(states) == 0 {
			return true, nil, errors.New("there is no further state")
		}
		w := watch.NewFakeWithChanSize(1, false)
		if next := states[0]; next == nil {
			w.Delete(&unstructured.Unstructured{Object: map[string]any{}})
		} else {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
			if err != nil {
				t.Error(err)
			}
			w.Modify(&unstructured.Unstructured{Object: content})
		}
		states = states[1:]
		return true, w, nil
	})
}

// TestCreateWait is about what a person sees of a backup that they wait for.
func TestCreateWait(t *testing.T) {
	pending := saved("mine", in("Pending", "Waiting for save of backup other"))
	for _, test := range []struct {
		reason, args string
		states       []*v1alpha1.ClusterRegistryBackup
		code         int
		text, shows  string
	}{
		{"it is verified", "", []*v1alpha1.ClusterRegistryBackup{pending, saved("mine")}, 0, "", "Pending: Waiting for save of backup other"},
		{"it fails", "", []*v1alpha1.ClusterRegistryBackup{saved("mine", in("Saving", "")), saved("mine", in("Failed", "no route"))}, 1, "backup registries/mine is Failed: no route", "Saving"},
		{"it is damaged", "", []*v1alpha1.ClusterRegistryBackup{saved("mine", in("Damaged", "hash"))}, 1, "backup registries/mine is Damaged: hash", ""},
		{"it is deleted", "", []*v1alpha1.ClusterRegistryBackup{nil}, 1, "backup registries/mine was deleted while it was waited for", ""},
		{"it takes too long", "--timeout=1ms", nil, 1, `backup registries/mine is not done: Pending; it continues, and "kubectl registry backup show mine -n registries" shows it`, ""},
	} {
		env := commandtest.New(t).WithObjects(t, fleet())
		becomes(t, env, test.states...)
		text, code := env.Run(t, NewCreate(env.Env), append(strings.Fields(test.args), "--name=mine", "--wait")...)
		if text != test.text || code != test.code || !strings.Contains(env.Stderr.String(), test.shows) {
			t.Errorf("%s: %d, %q, %s", test.reason, code, text, env.Stderr)
		}
		if out := env.Stdout.String(); code == 0 && !strings.Contains(out, "mine created\nit is in its store, and was verified 59 min ago\n") {
			t.Errorf("%s: it prints %s", test.reason, out)
		}
	}
}

// TestShow is about what a backup is good for, and lacks.
func TestShow(t *testing.T) {
	encrypted := fleet(func(r *v1alpha1.ClusterRegistry) {
		r.Spec.Server.Encryption = &v1alpha1.Encryption{}
		r.Spec.Server.Encryption.SecretRef.Name, r.Status.Backup.Lineage = "keys", "two"
	})
	unverified := func(b *v1alpha1.ClusterRegistryBackup) { b.Status.VerifiedTime = nil }
	for _, test := range []struct {
		reason   string
		backup   *v1alpha1.ClusterRegistryBackup
		registry *v1alpha1.ClusterRegistry
		code     int
		verdict  string
		has      []string
	}{
		{"a good one", saved("mine"), fleet(), 0, "OK: backup registries/mine of registry fleet: it is in its store, and was verified 59 min ago", []string{"Size           7000 bytes"}},
		{"one that was never verified", saved("mine", unverified), fleet(), 4, "ATTENTION: backup registries/mine of registry fleet: it is in its store, and was never verified", []string{`have that done with "kubectl registry backup verify mine"`}},
		{"one that could not be verified again", saved("mine", func(b *v1alpha1.ClusterRegistryBackup) { b.Status.Message = "no route" }), fleet(), 0, "OK: backup registries/mine of registry fleet: it is in its store, and was verified 59 min ago; no route", nil},
		{"one that changed nothing", saved("mine", skipped), fleet(), 0, "OK: backup registries/mine of registry fleet: nothing had changed since backup earlier, which is in its store and holds the same", []string{"Same as        earlier"}},
		{"one that failed", saved("mine", in("Failed", "no\x1b route")), fleet(), 4, "ATTENTION: backup registries/mine of registry fleet: it failed: no route", []string{"Missing: there is no backup in the store: take another one with"}},
		{"one that is damaged", saved("mine", func(b *v1alpha1.ClusterRegistryBackup) { b.Status.Phase, b.Status.Message = "Damaged", "hash" }), fleet(), 4, "ATTENTION: backup registries/mine of registry fleet: it can't be used: hash", []string{"Missing: no restore should be made from it"}},
		{"one that is not done", saved("mine", in("", "")), fleet(), 0, "WAIT: backup registries/mine of registry fleet: it is not done: Pending", []string{"Missing: it can't be restored from yet"}},
		{"one of a registry that is gone", saved("mine"), nil, 0, "OK: ", []string{"Missing: it can't be verified again: there is no ClusterRegistry registries/fleet any more, which names the store"}},
		{"one of other data, and encrypted", saved("mine"), encrypted, 0, "OK: ", []string{"(Secret keys has the present ones)", "of lineage one, and the registry has two"}},
	} {
		env := commandtest.New(t).WithObjects(t, test.backup)
		if test.registry != nil {
			env.WithObjects(t, test.backup, test.registry)
		}
		_, code := env.Run(t, NewShow(env.Env), "mine")
		out := env.Stdout.String()
		if code != test.code || !strings.HasPrefix(out, test.verdict) {
			t.Errorf("%s: %d,\n%s", test.reason, code, out)
		}
		for _, want := range test.has {
			if !strings.Contains(out, want) {
				t.Errorf("%s: it lacks %q:\n%s", test.reason, want, out)
			}
		}
		if test.has == nil && strings.Contains(out, "Missing") {
			t.Errorf("%s: it lacks something:\n%s", test.reason, out)
		}
	}
	env := commandtest.New(t).WithObjects(t, saved("mine"), fleet())
	if text, code := env.Run(t, NewShow(env.Env), "mine", "-o", "json"); code != 0 || text != "" {
		t.Fatalf("as json: %d, %s", code, text)
	}
	var shown Shown
	if err := json.Unmarshal(env.Stdout.Bytes(), &shown); err != nil || shown.Backup.Kind != Kind.Kind || shown.Attention || shown.Verdict == "" {
		t.Errorf("as json: %+v, %v", shown, err)
	}
	env = commandtest.New(t).WithObjects(t, saved("mine"), saved("mine", func(b *v1alpha1.ClusterRegistryBackup) { b.Namespace = "other" }))
	if text, code := env.Run(t, NewShow(env.Env), "mine"); code != 2 || text != `there is a ClusterRegistryBackup "mine" in the namespaces other, registries: name one with -n` {
		t.Errorf("two of the name: %d, %s", code, text)
	}
	if text, code := env.Run(t, NewShow(env.Env), "other"); code != 2 || !strings.HasPrefix(text, `there is no ClusterRegistryBackup "other" that you may see`) {
		t.Errorf("none of the name: %d, %s", code, text)
	}
}

// TestList is about the verdicts before the list.
func TestList(t *testing.T) {
	none := fleet(func(r *v1alpha1.ClusterRegistry) {
		r.Name, r.Spec.Backup, r.Status = "none", nil, v1alpha1.ClusterRegistryStatus{}
	})
	bad := fleet(func(r *v1alpha1.ClusterRegistry) {
		r.Name, r.Status.Conditions = "bad", []metav1.Condition{{Type: "BackupReady", Status: "False", Reason: "BackupFailed", Message: "no route"}}
	})
	gone := saved("left", func(b *v1alpha1.ClusterRegistryBackup) { b.Spec.RegistryRef.Name = "gone" })
	for _, test := range []struct {
		args string
		code int
		want []string
		not  string
	}{
		{"fleet", 0, []string{"OK: registries/fleet: all is well\n", "registries   mine   fleet      Completed   60 min ago   42         7000 bytes   59 min ago   a person\n"}, "left"},
		{"none", 0, []string{"NONE: registries/none: no backups are taken: it has no spec.backup\n"}, "NAMESPACE"},
		{"bad", 4, []string{"ATTENTION: registries/bad: BackupFailed: no route\n"}, "mine"},
		{"gone", 0, []string{"left"}, "OK"},
		{"", 4, []string{"fleet", "left", "bad", "none"}, "There are no"},
		{"other", 2, nil, "NAMESPACE"},
	} {
		env := commandtest.New(t).WithObjects(t, fleet(), none, bad, gone, saved("mine"))
		_, code := env.Run(t, NewList(env.Env), strings.Fields(test.args)...)
		out := env.Stdout.String()
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("%q lacks %q:\n%s", test.args, want, out)
			}
		}
		if code != test.code || strings.Contains(out, test.not) {
			t.Errorf("%q: %d,\n%s", test.args, code, out)
		}
	}
	env := commandtest.New(t)
	if _, code := env.Run(t, NewList(env.Env)); code != 0 || !strings.HasPrefix(env.Stdout.String(), "There are no") {
		t.Errorf("of nothing: %d, %s", code, env.Stdout)
	}
	env.Objects.PrependReactor("list", "clusterregistrybackups", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(Resource.GroupResource(), "", errors.New("no"))
	})
	if text, code := env.Run(t, NewList(env.Env)); code != 1 || !strings.Contains(text, "list the ClusterRegistryBackups") || !strings.HasSuffix(text, "docs/reference/plugin.md lists the rights that each command needs") {
		t.Errorf("without the right: %d, %s", code, text)
	}
}

// TestVerify expects the annotation on the backup that was read, and what comes of it.
func TestVerify(t *testing.T) {
	const request = "2026-11-23T12:00:00Z"
	asked := func(b *v1alpha1.ClusterRegistryBackup) {
		b.Annotations = map[string]string{v1alpha1.AnnotationVerify: request}
	}
	answered := func(b *v1alpha1.ClusterRegistryBackup) { b.Status.VerifyRequest = request }
	says := func(phase v1alpha1.BackupPhase, message string) func(*v1alpha1.ClusterRegistryBackup) {
		return func(b *v1alpha1.ClusterRegistryBackup) { b.Status.Phase, b.Status.Message = phase, message }
	}
	for _, test := range []struct {
		reason string
		backup *v1alpha1.ClusterRegistryBackup
		gone   bool // the registry
		args   string
		states []*v1alpha1.ClusterRegistryBackup
		code   int
		text   string
		asks   bool
	}{
		{reason: "a good one", backup: saved("mine"), asks: true},
		{reason: "one whose verification failed", backup: saved("mine", says("Failed", "no route")), asks: true},
		{reason: "a dry run", backup: saved("mine"), args: "--dry-run=client"},
		{reason: "one that waits", backup: saved("mine", in("", "")), code: 3, text: "backup registries/mine can't be verified: it is not done: Pending"},
		{reason: "one that failed", backup: saved("mine", in("Failed", "no route")), code: 3, text: "backup registries/mine can't be verified: it has nothing in the store: Failed: no route"},
		{reason: "one without content", backup: saved("mine", skipped), code: 3, text: "backup registries/mine can't be verified: nothing had changed when it was due, and it has no content of its own: verify backup earlier"},
		{reason: "no registry", backup: saved("mine"), gone: true, code: 3, text: "backup registries/mine can't be verified: there is no ClusterRegistry registries/fleet any more, which names the store"},
		{reason: "it is good", backup: saved("mine"), args: "--wait", states: []*v1alpha1.ClusterRegistryBackup{saved("mine", asked), saved("mine", asked, answered)}, asks: true},
		{reason: "it is damaged", backup: saved("mine"), args: "--wait", states: []*v1alpha1.ClusterRegistryBackup{saved("mine", asked, answered, says("Damaged", "hash"))}, code: 1, text: "backup registries/mine is Damaged: hash", asks: true},
		{reason: "the store is down", backup: saved("mine"), args: "--wait", states: []*v1alpha1.ClusterRegistryBackup{saved("mine", asked, answered, says("Completed", "no route"))}, code: 1, text: "backup registries/mine is Completed: no route", asks: true},
		{reason: "someone else asks", backup: saved("mine"), args: "--wait", states: []*v1alpha1.ClusterRegistryBackup{saved("mine")}, code: 1, text: `someone else has asked for another verification of backup registries/mine: "kubectl registry backup show mine -n registries" shows what came of it`, asks: true},
	} {
		env := commandtest.New(t).WithObjects(t, test.backup)
		if !test.gone {
			env.WithObjects(t, test.backup, fleet())
		}
		becomes(t, env, test.states...)
		text, code := env.Run(t, NewVerify(env.Env), append(strings.Fields(test.args), "mine")...)
		if text != test.text || code != test.code {
			t.Errorf("%s: %d, %q", test.reason, code, text)
		}
		sent := ""
		for _, action := range env.Objects.Actions() {
			if patch, is := action.(clienttesting.PatchAction); is {
				sent = string(patch.GetPatch())
			}
		}
		want := ""
		if test.asks {
			want = `{"metadata":{"annotations":{"operator.clusterregistry.io/verify":"` + request + `"},"uid":"uid"}}`
		}
		if sent != want {
			t.Errorf("%s: it sends %q", test.reason, sent)
		}
	}
}

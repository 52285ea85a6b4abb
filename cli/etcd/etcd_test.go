package etcd

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// fleet returns a registry with members that are ready, led by the first.
func fleet(members int, changes ...func(*v1alpha1.ClusterRegistry)) *v1alpha1.ClusterRegistry {
	mi := func(n int64) *resource.Quantity { return resource.NewQuantity(n<<20, resource.BinarySI) }
	out := &v1alpha1.ClusterRegistry{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterRegistry"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: "fleet", ResourceVersion: "7"},
		Spec:       v1alpha1.ClusterRegistrySpec{Etcd: v1alpha1.Etcd{Replicas: int32(members)}},
		Status: v1alpha1.ClusterRegistryStatus{Conditions: []metav1.Condition{
			{Type: "EtcdReady", Status: "True", Reason: "Ready"}, {Type: "Ready", Status: "True", Reason: "Ready"}}},
	}
	for i := range members {
		name := "fleet-etcd-" + string(rune('0'+i))
		out.Status.Etcd.Members = append(out.Status.Etcd.Members, v1alpha1.EtcdMember{Name: name, ID: "a" + name[11:], Ready: true, Version: "v3.7.3", Leader: i == 0, DatabaseSize: mi(800), DatabaseSizeInUse: mi(200), Quota: mi(4096)})
	}
	out.Status.Etcd.Ready = "3/3"
	for _, change := range changes {
		change(out)
	}
	return out
}

// environment returns an environment whose host cluster has registries, and pods and claims of the
// first one.
func environment(t *testing.T, registries ...*v1alpha1.ClusterRegistry) *commandtest.Env {
	t.Helper()
	env := commandtest.New(t)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{v1alpha1.LabelInstance: "fleet", v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
	objects := []runtime.Object{
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: "fleet-etcd-1", Labels: labels}, Spec: corev1.PodSpec{NodeName: "node-b"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: "data-fleet-etcd-1", Labels: labels}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}},
	}
	for _, registry := range registries {
		objects = append(objects, registry)
	}
	env.Objects = dynamicfake.NewSimpleDynamicClient(scheme, objects...)
	return env
}

// patched returns what was sent, nothing when nothing was.
func patched(t *testing.T, env *commandtest.Env) (annotations map[string]string) {
	t.Helper()
	for _, action := range env.Objects.Actions() {
		patch, is := action.(clienttesting.PatchAction)
		if !is {
			continue
		}
		var body struct {
			Metadata struct {
				ResourceVersion string
				Annotations     map[string]string
			}
		}
		if err := json.Unmarshal(patch.GetPatch(), &body); err != nil || body.Metadata.ResourceVersion != "7" {
			t.Errorf("it sends %s: %v", patch.GetPatch(), err)
		}
		annotations = body.Metadata.Annotations
	}
	return annotations
}

func TestDefrag(t *testing.T) {
	defragmented := func(at time.Time) func(*v1alpha1.ClusterRegistry) {
		return func(r *v1alpha1.ClusterRegistry) {
			r.Status.Etcd.Members[0].DefragmentedTime = &metav1.Time{Time: at}
		}
	}
	external := func(r *v1alpha1.ClusterRegistry) { r.Spec.Etcd.External = &v1alpha1.ExternalEtcd{} }
	paused := func(r *v1alpha1.ClusterRegistry) { r.Spec.Paused = true }
	const asks = `Ask the operator to do this?`
	for _, test := range []struct {
		reason, args, typed string
		registry            *v1alpha1.ClusterRegistry
		code                int
		sets, says          string
	}{
		{"all, confirmed", "fleet", "y\n", fleet(3), 0, "2026-11-23T12:00:00Z", "fleet-etcd-0 rewrites its file of 800Mi, of which 200Mi are in use; it leads, and so comes last"},
		{"all, not confirmed", "fleet", "n\n", fleet(3), 3, "", asks},
		{"without a terminal", "fleet", "", fleet(3), 3, "", "defragment all etcd members, one at a time"},
		{"without questions", "fleet --yes", "", fleet(3), 0, "2026-11-23T12:00:00Z", "requests to a member that is being defragmented take longer"},
		{"one", "fleet fleet-etcd-1 --yes", "", fleet(3), 0, "2026-11-23T12:00:00Z,fleet-etcd-1", "defragment etcd member fleet-etcd-1"},
		{"a single one", "fleet --yes", "", fleet(1), 0, "2026-11-23T12:00:00Z", "the registry is unavailable while its only member is defragmented"},
		{"a clock that is behind", "fleet --yes", "", fleet(3, defragmented(commandtest.Now.Add(time.Hour))), 0, "2026-11-23T13:00:01Z", ""},
		{"a registry that is paused", "fleet --yes", "", fleet(3, paused), 0, "2026-11-23T12:00:00Z", "It waits until this is resolved: spec.paused is true"},
		{"only tried", "fleet --dry-run=client", "", fleet(3), 0, "", "It sets the annotation operator.clusterregistry.io/defragment=2026-11-23T12:00:00Z"},
		{"tried by the server", "fleet --dry-run=server", "", fleet(3), 0, "2026-11-23T12:00:00Z", ""},
		{"one that there is not", "fleet fleet-etcd-9 --yes", "", fleet(3), 2, "", ""},
		{"another registry", "other --yes", "", fleet(3), 2, "", ""},
		{"an external etcd", "fleet --yes", "", fleet(3, external), 3, "", ""},
		{"a dry run that there is not", "fleet --dry-run=maybe", "", fleet(3), 2, "", ""},
		{"no registry", "--yes", "", fleet(3), 2, "", ""},
	} {
		env := environment(t, test.registry)
		if test.typed != "" {
			env.Typing(test.typed)
		}
		_, code := env.Run(t, NewDefrag(env.Env), strings.Fields(test.args)...)
		if got := patched(t, env)[v1alpha1.AnnotationDefragment]; code != test.code || got != test.sets || !strings.Contains(env.Stderr.String(), test.says) {
			t.Errorf("%s: exit code %d, sets %q, says %s", test.reason, code, got, env.Stderr)
		}
		if done := strings.Contains(env.Stdout.String(), "fleet patched"); done != (test.code == 0) {
			t.Errorf("%s: it prints %q", test.reason, env.Stdout)
		}
	}
}

func TestReplace(t *testing.T) {
	down := func(i int) func(*v1alpha1.ClusterRegistry) {
		return func(r *v1alpha1.ClusterRegistry) { r.Status.Etcd.Members[i].Ready = false }
	}
	asked := func(value string) func(*v1alpha1.ClusterRegistry) {
		return func(r *v1alpha1.ClusterRegistry) {
			r.Annotations = map[string]string{v1alpha1.AnnotationReplaceMember: value}
		}
	}
	elsewhere := func(r *v1alpha1.ClusterRegistry) { r.Namespace = "other" }
	for _, test := range []struct {
		reason, args string
		registries   []*v1alpha1.ClusterRegistry
		code         int
		sets, says   string // says is of the plan, or of the error
	}{
		{"one of three", "fleet-etcd-1 --yes", []*v1alpha1.ClusterRegistry{fleet(3)}, 0, "a1", "2 of 3 members are left, and serve; until the new one has a vote, no other may fail"},
		{"one of five", "fleet-etcd-4 --yes", []*v1alpha1.ClusterRegistry{fleet(5)}, 0, "a4", "4 of 5 members are left, and serve."},
		{"another one was replaced before", "fleet-etcd-1 --yes", []*v1alpha1.ClusterRegistry{fleet(3, asked("gone"))}, 0, "a1", ""},
		{"another one waits for its replacement", "fleet-etcd-1 --yes", []*v1alpha1.ClusterRegistry{fleet(3, asked("gone, a2"))}, 0, "a2,a1", ""},
		{"it waits for its replacement", "fleet-etcd-1 --yes", []*v1alpha1.ClusterRegistry{fleet(3, asked("a1"))}, 0, "a1", ""},
		{"the leader", "fleet-etcd-0 --yes", []*v1alpha1.ClusterRegistry{fleet(3)}, 0, "a0", "Clients notice: the leadership moves"},
		{"one that is down", "fleet-etcd-1 --yes", []*v1alpha1.ClusterRegistry{fleet(3, down(1))}, 0, "a1", "Clients notice nothing"},
		{"another one is down", "fleet-etcd-1 --yes", []*v1alpha1.ClusterRegistry{fleet(3, down(2))}, 3, "", "without fleet-etcd-1, 1 of 3 etcd members of registries/fleet are ready, and a majority is 2"},
		{"another one of five is down", "fleet-etcd-1 --yes", []*v1alpha1.ClusterRegistry{fleet(5, down(2))}, 0, "a1", ""},
		{"another one is a learner", "fleet-etcd-1 --yes", []*v1alpha1.ClusterRegistry{fleet(3, func(r *v1alpha1.ClusterRegistry) { r.Status.Etcd.Members[2].Learner = true })}, 3, "", "are ready, and a majority is 2"},
		{"a single one", "fleet-etcd-0 --yes", []*v1alpha1.ClusterRegistry{fleet(1)}, 3, "", "fleet-etcd-0 is the only etcd member of registries/fleet, and its data would be gone: set spec.etcd.replicas to 3 first"},
		{"one without an ID", "fleet-etcd-1 --yes", []*v1alpha1.ClusterRegistry{fleet(3, func(r *v1alpha1.ClusterRegistry) { r.Status.Etcd.Members[1].ID = "" })}, 3, "", "has not reported the ID of etcd member fleet-etcd-1"},
		{"one that there is not", "fleet-etcd-7 --yes", []*v1alpha1.ClusterRegistry{fleet(3)}, 2, "", `there is no etcd member "fleet-etcd-7": there are registries/fleet-etcd-0, registries/fleet-etcd-1, registries/fleet-etcd-2`},
		{"one of an external etcd", "fleet-etcd-0 --yes", []*v1alpha1.ClusterRegistry{fleet(3, func(r *v1alpha1.ClusterRegistry) { r.Spec.Etcd.External = &v1alpha1.ExternalEtcd{} })}, 2, "", "no registry that you may see has members that the operator runs"},
		{"two of the name", "fleet-etcd-1 --yes", []*v1alpha1.ClusterRegistry{fleet(3), fleet(3, elsewhere)}, 2, "", `there is an etcd member "fleet-etcd-1" in the namespaces other, registries: name one with -n`},
		{"not confirmed", "fleet-etcd-1", []*v1alpha1.ClusterRegistry{fleet(3)}, 3, "", "use --yes"},
		{"only tried", "fleet-etcd-1 --dry-run=client", []*v1alpha1.ClusterRegistry{fleet(3)}, 0, "", "It sets the annotation operator.clusterregistry.io/replace-etcd-member=a1"},
	} {
		env := environment(t, test.registries...)
		text, code := env.Run(t, NewReplace(env.Env), strings.Fields(test.args)...)
		if got := patched(t, env)[v1alpha1.AnnotationReplaceMember]; code != test.code || got != test.sets || !strings.Contains(env.Stderr.String()+text, test.says) {
			t.Errorf("%s: exit code %d, sets %q, says %s%s", test.reason, code, got, env.Stderr, text)
		}
	}
}

func TestMembers(t *testing.T) {
	for _, test := range []struct {
		reason, args string
		registry     *v1alpha1.ClusterRegistry
		code         int
		says         []string
	}{
		{"all is well", "fleet", fleet(3), 0, []string{"OK: registries/fleet, 3/3 etcd members ready\n", "fleet-etcd-0   true    leader     v3.7.3    a0   800Mi   200Mi    75%    4Gi     -              -        -", "pv-1     node-b"}},
		{"the only one", "", fleet(3), 0, []string{"OK: "}},
		{"one is down, in an operation", "fleet", fleet(3, func(r *v1alpha1.ClusterRegistry) {
			r.Status.Conditions[0] = metav1.Condition{Type: "EtcdReady", Status: "False", Reason: "MembersNotReady", Message: "2 of 3\x1b[31m"}
			r.Status.Operation = &v1alpha1.Operation{Type: "Replacement", To: "fleet-etcd-1", Progress: "MemberAddition"}
			r.Status.Etcd.Ready = "2/3"
			r.Status.Etcd.Members[1] = v1alpha1.EtcdMember{Name: "fleet-etcd-1", LostTime: &metav1.Time{Time: commandtest.Now}}
			r.Status.Etcd.Members[2].Learner = true
		}), 4, []string{"ATTENTION: registries/fleet, 2/3 etcd members ready, under way: Replacement fleet-etcd-1: MemberAddition", "  MembersNotReady: 2 of 3[31m\n", "fleet-etcd-1   data lost   -", "fleet-etcd-2   true        learner"}},
		{"something to know", "fleet", fleet(3, func(r *v1alpha1.ClusterRegistry) {
			r.Status.Conditions[0].Reason, r.Status.Conditions[0].Message = "VolumesGrowing", "they grow"
		}), 0, []string{"OK: ", "VolumesGrowing: they grow"}},
		{"nothing is reported", "fleet", fleet(0, func(r *v1alpha1.ClusterRegistry) { r.Status = v1alpha1.ClusterRegistryStatus{} }), 4, []string{"ATTENTION: registries/fleet, - etcd members ready", "the operator has not reported of etcd"}},
		{"an external etcd", "fleet", fleet(3, func(r *v1alpha1.ClusterRegistry) { r.Spec.Etcd.External = &v1alpha1.ExternalEtcd{} }), 0, []string{"3/3 members of an external etcd ready"}},
		{"for a program", "fleet -o json", fleet(3), 0, []string{`"freePercent": 75`, `"databaseSizeInUse": "200Mi"`, `"volume": "pv-1"`, `"role": "follower"`}},
		{"in a form that there is not", "fleet -o table", fleet(3), 2, nil},
	} {
		env := environment(t, test.registry)
		_, code := env.Run(t, NewMembers(env.Env), strings.Fields(test.args)...)
		if code != test.code {
			t.Errorf("%s: exit code %d", test.reason, code)
		}
		for _, says := range test.says {
			if !strings.Contains(env.Stdout.String(), says) {
				t.Errorf("%s: it lacks %q:\n%s", test.reason, says, env.Stdout)
			}
		}
	}
}

// TestMembersWithoutRights leaves out what may not be listed.
func TestMembersWithoutRights(t *testing.T) {
	env := environment(t, fleet(3))
	env.Objects.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetResource().Group != "" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: action.GetResource().Resource}, "", nil)
	})
	if text, code := env.Run(t, NewMembers(env.Env), "fleet"); code != 0 || strings.Contains(env.Stdout.String(), "pv-1") {
		t.Errorf("%d, %s: %s", code, text, env.Stdout)
	}
	for _, note := range []string{"note: volumes are not shown: list the PersistentVolumeClaims", "note: nodes are not shown: list the pods"} {
		if !strings.Contains(env.Stderr.String(), note) {
			t.Errorf("it says %s", env.Stderr)
		}
	}
}

// TestConflict is about a registry that someone has changed between the plan and the write.
func TestConflict(t *testing.T) {
	for _, make := range []func(*command.Env) *cobra.Command{NewDefrag, NewReplace} {
		env := environment(t, fleet(3))
		env.Objects.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "clusterregistries"}, "fleet", nil)
		})
		args := []string{"fleet", "--yes"}
		cmd := make(env.Env)
		if cmd.Name() == "replace" {
			args[0] = "fleet-etcd-1"
		}
		if text, code := env.Run(t, cmd, args...); code != 1 || !strings.Contains(text, "of registries/fleet: ") || env.Stdout.String() != "" {
			t.Errorf("%s: %d, %s, %s", cmd.Name(), code, text, env.Stdout)
		}
	}
}

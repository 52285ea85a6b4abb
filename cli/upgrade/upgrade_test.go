package upgrade

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/operator/version"
)

// table are releases that differ in each of the ways that matter.
const table = `releases:
- {version: v0.1.0, etcd: v3.6.14, helper: v0.1.0, layout: v1, serves: [v1alpha1], reads: [v1alpha1], stores: v1alpha1, host: {from: "1.34", to: "1.37"}, kubectl: {from: "1.32", to: "1.37"}}
- {version: v0.2.0, etcd: v3.6.14, helper: v0.1.0, layout: v1, upgradesFrom: [v0.1.0], serves: [v1alpha1, v1beta1], reads: [v1alpha1, v1beta1], stores: v1alpha1, host: {from: "1.34", to: "1.37"}, kubectl: {from: "1.32", to: "1.37"}}
- {version: v0.3.0, etcd: v3.7.3, helper: v0.1.0, layout: v1, upgradesFrom: [v0.2.0], serves: [v1beta1], reads: [v1beta1], stores: v1beta1, host: {from: "1.34", to: "1.37"}, kubectl: {from: "1.32", to: "1.37"}}
- {version: v0.4.0, etcd: v3.7.3, helper: v0.1.0, layout: v1, upgradesFrom: [v0.3.0], serves: [v1beta1], reads: [v1beta1], stores: v1beta1, host: {from: "1.38", to: "1.39"}, kubectl: {from: "1.32", to: "1.37"}}
`

func releases(t *testing.T) func() ([]version.Release, error) {
	t.Helper()
	all, err := version.Decode([]byte(table))
	if err != nil {
		t.Fatal(err)
	}
	return func() ([]version.Release, error) { return all, nil }
}

func fleet(running string, changes ...func(*v1alpha1.ClusterRegistry)) *v1alpha1.ClusterRegistry {
	out := &v1alpha1.ClusterRegistry{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterRegistry"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "registries", Name: "fleet", Generation: 1},
		Spec:       v1alpha1.ClusterRegistrySpec{Version: v1alpha1.Version(running), Etcd: v1alpha1.Etcd{Replicas: 1}},
		Status: v1alpha1.ClusterRegistryStatus{Version: running, ObservedGeneration: 1, EtcdVersion: "v3.6.14", HostVersion: "v1.37.1",
			Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready"}}},
	}
	for _, change := range changes {
		change(out)
	}
	return out
}

func phases(step Step) string {
	var out []string
	for _, phase := range step.Phases {
		out = append(out, phase.Name)
	}
	return strings.Join(out, " ")
}

func TestPlan(t *testing.T) {
	all, _ := releases(t)()
	plan, err := MakePlan(all, fleet("v0.1.0"), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Releases) != 3 || strings.Join(plan.Releases[1].Path, " ") != "v0.2.0 v0.3.0" || plan.Releases[2].Problem != "the host cluster runs Kubernetes v1.37.1; v0.4.0 was tested with 1.38 to 1.39" || plan.Holds != nil {
		t.Errorf("the releases are %+v, held by %v", plan.Releases, plan.Holds)
	}
	if len(plan.Steps) != 2 {
		t.Fatalf("the steps are %+v", plan.Steps)
	}
	for i, want := range []struct {
		phases     string
		interrupts int
		rollback   bool
	}{{"Preflight Snapshot Server Verification", 0, true}, {"Preflight Snapshot Etcd Server Verification StorageMigration", 2, true}} {
		if got := plan.Steps[i]; phases(got) != want.phases || len(got.Interrupts) != want.interrupts || got.Rollback != want.rollback {
			t.Errorf("step %d is %+v", i+1, got)
		}
	}
	outside := fleet("v0.2.0", func(r *v1alpha1.ClusterRegistry) { r.Spec.Etcd = v1alpha1.Etcd{External: &v1alpha1.ExternalEtcd{}} })
	if plan, err = MakePlan(all, outside, "v0.3.0"); err != nil || phases(plan.Steps[0]) != "Preflight Server Verification StorageMigration" {
		t.Errorf("with an external etcd: %+v, %v", plan, err)
	}
	if plan, err = MakePlan(all, fleet("v0.4.0"), ""); err != nil || len(plan.Steps) != 0 || len(plan.Releases) != 0 {
		t.Errorf("at the newest: %+v, %v", plan, err)
	}
	busy := fleet("v0.2.0", func(r *v1alpha1.ClusterRegistry) {
		r.Spec.Paused, r.Status.Conditions[0].Status, r.Status.Conditions[0].Reason, r.Status.Conditions[0].Message = true, "False", "EtcdNotReady", "no"
	})
	if plan, err = MakePlan(all, busy, ""); err != nil || strings.Join(plan.Holds, "; ") != "spec.paused is true; the registry is not Ready: EtcdNotReady: no" {
		t.Errorf("one that is held: %+v, %v", plan, err)
	}
}

func TestPlanErrors(t *testing.T) {
	for _, test := range []struct {
		running, args, text string
		code                int
	}{
		{"", "fleet", `the registry registries/fleet is not installed yet: "kubectl registry status fleet" says what it waits for`, 3},
		{"v0.9.0", "fleet", "the registry runs v0.9.0, which this plugin does not know: install the plugin of the operator's release", 3},
		{"v0.2.0", "fleet --to v0.4.0", "v0.4.0 can't be reached: the host cluster runs Kubernetes v1.37.1; v0.4.0 was tested with 1.38 to 1.39", 3},
		{"v0.2.0", "fleet --to v0.9.0", "this plugin knows no release v0.9.0 after v0.2.0: it knows v0.1.0, v0.2.0, v0.3.0, v0.4.0", 3},
		{"v0.2.0", "fleet --to v0.1.0", "v0.2.0 -> v0.1.0 is a downgrade", 3},
		{"v0.2.0", "other", `there is no ClusterRegistry "other": there are registries/fleet`, 2},
	} {
		env := commandtest.New(t).WithObjects(t, fleet(test.running))
		p := &planner{env: env.Env, releases: releases(t)}
		if text, code := env.Run(t, p.command(), strings.Fields(test.args)...); code != test.code || !strings.HasPrefix(text, test.text) && !strings.Contains(text, test.text) {
			t.Errorf("%s of %s: %d, %s", test.args, test.running, code, text)
		}
	}
}

// TestPlanWithoutAPath expects that a release to which no upgrade leads is shown as such.
func TestPlanWithoutAPath(t *testing.T) {
	all, _ := releases(t)()
	all = append(all[:3:3], version.Release{Version: "v0.5.0", UpgradesFrom: []string{"v0.4.9"}})
	plan, err := MakePlan(all, fleet("v0.3.0"), "")
	if err != nil || len(plan.Releases) != 1 || plan.Releases[0].Problem != "no upgrade leads there from v0.3.0" {
		t.Errorf("%+v, %v", plan, err)
	}
}

// TestToRefused expects the reason when the host cluster doesn't take the version.
func TestToRefused(t *testing.T) {
	resource := hostcluster.Resource.GroupResource()
	for _, test := range []struct {
		reason string
		err    error
		text   string
	}{
		{"someone else has changed it", apierrors.NewConflict(resource, "fleet", errors.New("the object has been modified")), `set the version of registries/fleet: Operation cannot be fulfilled on clusterregistries.operator.clusterregistry.io "fleet": the object has been modified`},
		{"no right", apierrors.NewForbidden(resource, "fleet", errors.New("no")), `set the version of registries/fleet: clusterregistries.operator.clusterregistry.io "fleet" is forbidden: no; docs/reference/plugin.md lists the rights that each command needs`},
	} {
		env := commandtest.New(t).WithObjects(t, fleet("v0.2.0"))
		env.Objects.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.err })
		s := &starter{env: env.Env, releases: releases(t)}
		if text, code := env.Run(t, s.command(), "v0.3.0", "fleet"); code != 1 || text != test.text {
			t.Errorf("%s: %d, %s", test.reason, code, text)
		}
	}
}

// TestPlanChangesNothing expects that a plan only reads, and prints what comes.
func TestPlanChangesNothing(t *testing.T) {
	env := commandtest.New(t).WithObjects(t, fleet("v0.2.0"))
	p := &planner{env: env.Env, releases: releases(t)}
	if text, code := env.Run(t, p.command()); code != 0 {
		t.Fatal(text)
	}
	for _, want := range []string{"Registry registries/fleet runs v0.2.0.\n", "  v0.3.0: yes\n", "Step 1: v0.2.0 -> v0.3.0\n", "etcd v3.6.14 -> v3.7.3", "Clients notice: clusterregistry.k8s.io/v1alpha1 is no longer served", "To begin: kubectl registry upgrade to v0.3.0 fleet -n registries --wait\n"} {
		if !strings.Contains(env.Stdout.String(), want) {
			t.Errorf("%q is missing in\n%s", want, env.Stdout)
		}
	}
	for _, action := range env.Objects.Actions() {
		if action.GetVerb() != "list" {
			t.Errorf("a plan has sent %s", action.GetVerb())
		}
	}
}

func TestTo(t *testing.T) {
	for _, test := range []struct {
		reason, running, args, text, says string
		code                              int
		patched                           bool
	}{
		{reason: "a step", running: "v0.2.0", args: "v0.3.0 fleet", says: "clusterregistry.operator.clusterregistry.io/fleet patched\n", patched: true},
		{reason: "the only registry", running: "v0.2.0", args: "v0.3.0", says: "clusterregistry.operator.clusterregistry.io/fleet patched\n", patched: true},
		{reason: "what runs", running: "v0.2.0", args: "v0.2.0 fleet", says: "clusterregistry.operator.clusterregistry.io/fleet unchanged\n"},
		{reason: "a dry run", running: "v0.2.0", args: "v0.3.0 --dry-run=client", says: "clusterregistry.operator.clusterregistry.io/fleet patched (dry run)\n"},
		{reason: "a dry run at the server", running: "v0.2.0", args: "v0.3.0 --dry-run=server", says: "clusterregistry.operator.clusterregistry.io/fleet patched (server dry run)\n", patched: true},
		{reason: "two steps at once", running: "v0.1.0", args: "v0.3.0", code: 3, text: "v0.1.0 -> v0.3.0 skips v0.2.0; set spec.version to v0.2.0 first"},
		{reason: "a downgrade", running: "v0.2.0", args: "v0.1.0", code: 3, text: "v0.2.0 -> v0.1.0 is a downgrade, which is not possible: set spec.version back to v0.2.0"},
		{reason: "a host cluster that it was not tested with", running: "v0.3.0", args: "v0.4.0", code: 3, text: "v0.4.0 can't be reached: the host cluster runs Kubernetes v1.37.1; v0.4.0 was tested with 1.38 to 1.39"},
		{reason: "a release that only the operator knows", running: "v0.2.0", args: "v0.9.0", says: "clusterregistry.operator.clusterregistry.io/fleet patched\n", patched: true},
		{reason: "no version", running: "v0.2.0", code: 2, text: `accepts between 1 and 2 arg(s), received 0; see "kubectl-registry to --help"`},
	} {
		env := commandtest.New(t).WithObjects(t, fleet(test.running))
		s := &starter{env: env.Env, releases: releases(t)}
		text, code := env.Run(t, s.command(), strings.Fields(test.args)...)
		patched := false
		for _, action := range env.Objects.Actions() {
			if patch, is := action.(clienttesting.PatchAction); is {
				var body struct {
					Metadata map[string]any
					Spec     map[string]string
				}
				if err := json.Unmarshal(patch.GetPatch(), &body); err != nil || body.Spec["version"] != strings.Fields(test.args)[0] || body.Metadata == nil {
					t.Errorf("%s: it sends %s", test.reason, patch.GetPatch())
				}
				patched = true
			}
		}
		if code == 0 && !strings.Contains(env.Stderr.String(), "ClusterRegistry registries/fleet in the host cluster of context hub: spec.version "+test.running+" -> ") {
			t.Errorf("%s: it does not say where: %s", test.reason, env.Stderr)
		}
		if text != test.text || code != test.code || env.Stdout.String() != test.says || patched != test.patched {
			t.Errorf("%s: %d, %q, it says %q, patched %t", test.reason, code, text, env.Stdout, patched)
		}
	}
}

// TestWait drives a registry through what an operator reports.
func TestWait(t *testing.T) {
	after := func(changes ...func(*v1alpha1.ClusterRegistry)) *v1alpha1.ClusterRegistry {
		return fleet("v0.2.0", append([]func(*v1alpha1.ClusterRegistry){func(r *v1alpha1.ClusterRegistry) {
			r.Spec.Version, r.Generation, r.Status.ObservedGeneration = "v0.3.0", 2, 2
		}}, changes...)...)
	}
	under := after(func(r *v1alpha1.ClusterRegistry) { r.Status.Operation = &v1alpha1.Operation{Progress: "Etcd 1/1"} })
	for _, test := range []struct {
		reason string
		last   *v1alpha1.ClusterRegistry
		text   string
	}{
		{"it is done", after(func(r *v1alpha1.ClusterRegistry) { r.Status.Version = "v0.3.0" }), ""},
		{"it is rolled back", after(func(r *v1alpha1.ClusterRegistry) {
			r.Status.History = []v1alpha1.Transition{{Version: "v0.3.0", State: v1alpha1.TransitionRolledBack, Generation: 2, Message: "it crashed"}}
		}), "the upgrade to v0.3.0 was rolled back: it crashed"},
		{"the operator refuses", after(func(r *v1alpha1.ClusterRegistry) {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: "VersionSupported", Status: "False", Reason: "HostUnsupported", Message: "no"})
		}), "the operator does not begin it: HostUnsupported: no"},
		{"someone else", fleet("v0.2.0"), "someone has set spec.version to v0.2.0"},
	} {
		env := commandtest.New(t).WithObjects(t, fleet("v0.2.0"))
		states := []*v1alpha1.ClusterRegistry{under, test.last}
		env.Objects.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
			if len(states) == 0 {
				return true, nil, errors.New("there is no further state")
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(states[0])
			if err != nil {
				t.Error(err)
			}
			states = states[1:]
			w := watch.NewFakeWithChanSize(1, false)
			object := &unstructured.Unstructured{Object: content}
			object.SetGroupVersionKind(hostcluster.Kind)
			w.Modify(object)
			return true, w, nil
		})
		s := &starter{env: env.Env, releases: releases(t)}
		text, code := env.Run(t, s.command(), "v0.3.0", "--wait")
		if text != test.text || (code != 0) != (test.text != "") {
			t.Errorf("%s: %d, %q", test.reason, code, text)
		}
		if !strings.Contains(env.Stderr.String(), "Etcd 1/1") {
			t.Errorf("%s: it shows %q", test.reason, env.Stderr)
		}
	}
	// One that is deleted is not waited for.
	gone := commandtest.New(t).WithObjects(t, fleet("v0.2.0"))
	gone.Objects.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		w := watch.NewFakeWithChanSize(1, false)
		w.Delete(&unstructured.Unstructured{Object: map[string]any{}})
		return true, w, nil
	})
	if text, code := gone.Run(t, (&starter{env: gone.Env, releases: releases(t)}).command(), "v0.3.0", "--wait"); code != 1 || text != "registries/fleet was deleted while it was waited for" {
		t.Errorf("one that is deleted: %d, %q", code, text)
	}
	env := commandtest.New(t).WithObjects(t, fleet("v0.2.0"))
	s := &starter{env: env.Env, releases: releases(t)}
	if text, code := env.Run(t, s.command(), "v0.3.0", "--wait", "--timeout=1ms"); code != 1 || !strings.HasSuffix(text, `it continues, and "kubectl registry status fleet -w" shows it`) {
		t.Errorf("a timeout: %d, %q", code, text)
	}
	// It waits for what has begun also when that can't be printed.
	env = commandtest.New(t).WithObjects(t, fleet("v0.2.0"))
	s = &starter{env: env.Env, releases: releases(t)}
	if text, code := env.Run(t, s.command(), "v0.3.0", "--wait", "--timeout=1ms", "-o=jsonpath={.spec[5]}"); code != 1 || !strings.Contains(text, "it continues, and ") || !strings.Contains(text, "print as jsonpath={.spec[5]}: ") {
		t.Errorf("an output that fails: %d, %q", code, text)
	}
}

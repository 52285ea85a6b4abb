package join

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

var resource = v1beta1.SchemeGroupVersion.WithResource("clusters")

// overtaken has someone else change a cluster before each of the first writes of a verb
// and a subresource, which then conflict.
func overtaken(env *commandtest.Env, verb, subresource string, times int, change func(*v1beta1.Cluster)) {
	env.Clusters.PrependReactor(verb, "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != subresource || times == 0 {
			return false, nil, nil
		}
		times--
		found, err := env.Clusters.Tracker().Get(resource, "", "east")
		if err != nil {
			return true, nil, err
		}
		now := found.DeepCopyObject().(*v1beta1.Cluster)
		now.ResourceVersion += "1"
		change(now)
		if now.DeletionTimestamp != nil {
			err = env.Clusters.Tracker().Delete(resource, "", "east")
		} else {
			err = env.Clusters.Tracker().Update(resource, now, "")
		}
		if err == nil {
			err = apierrors.NewConflict(resource.GroupResource(), "east", errors.New("the object has been modified; please apply your changes to the latest version and try again"))
		}
		return true, nil, err
	})
}

// probed is what the health controller does.
func probed(c *v1beta1.Cluster) {
	if c.Status == nil {
		c.Status = &v1beta1.ClusterStatus{}
	}
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: v1beta1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "Ready"})
}

// TestJoinBesideTheController expects that a cluster whose status the health controller
// writes at the same time joins as any other, and has the status of both.
func TestJoinBesideTheController(t *testing.T) {
	for reason, verbs := range map[string][]string{"it was probed as soon as it joined": {"status"}, "it was probed before it was written": {""}, "both": {"", "status"}} {
		env := commandtest.New(t, entry("east", idOfEast, "https://old.example"))
		for _, subresource := range verbs {
			overtaken(env, "update", subresource, 2, probed)
		}
		if text, code := env.Run(t, newJoin(env, idOfEast), "east", "--cluster-kubeconfig", write(t, kubeconfig), "--cluster-context", "east"); code != 0 {
			t.Errorf("%s: %s", reason, text)
		}
		made, err := env.Clusters.ClusterregistryV1beta1().Clusters().Get(t.Context(), "east", metav1.GetOptions{})
		if err != nil || made.Spec.Endpoints[0].URL != "https://east.example:6443" || made.Status == nil || made.Status.Version.Kubernetes != "v1.37.1" ||
			!meta.IsStatusConditionTrue(made.Status.Conditions, conditionIdentityVerified) {
			t.Errorf("%s: it is %+v, %v", reason, made, err)
			continue
		}
		if verbs[len(verbs)-1] == "status" && !meta.IsStatusConditionTrue(made.Status.Conditions, v1beta1.ConditionAvailable) {
			t.Errorf("%s: what the controller has reported is gone: %+v", reason, made.Status)
		}
		if strings.Contains(env.Stderr.String(), "note:") {
			t.Errorf("%s: it says\n%s", reason, env.Stderr)
		}
	}
}

// TestJoinOvertaken has each way in which a registry refuses to write what join has
// admitted, and expects what a person has to know of it.
func TestJoinOvertaken(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "clusterregistry.k8s.io", Resource: "clusters"}, "east", errors.New("no"))
	moved := entry("east", idOfEast, "https://old.example")
	fails := func(verb string, err error) func(*commandtest.Env) {
		return func(env *commandtest.Env) {
			env.Clusters.PrependReactor(verb, "clusters", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		}
	}
	overtakenBy := func(change func(*v1beta1.Cluster)) func(*commandtest.Env) {
		return func(env *commandtest.Env) { overtaken(env, "update", "", 1, change) }
	}
	const changed = `someone else has changed the cluster "east" at the same time: join it again`
	for _, test := range []struct {
		reason  string
		entries []runtime.Object
		happens func(*commandtest.Env)
		text    string
	}{
		{"another one with the name, just now", nil, fails("create", apierrors.NewAlreadyExists(resource.GroupResource(), "east")), `someone else has entered "east" just now: see "kubectl get crc east", then join again`},
		{"no right to create", nil, fails("create", forbidden), `create the cluster east: clusters.clusterregistry.k8s.io "east" is forbidden: no; docs/reference/plugin.md lists the rights that each command needs`},
		{"no right to update", []runtime.Object{moved}, fails("update", forbidden), `update the cluster east: clusters.clusterregistry.k8s.io "east" is forbidden: no; docs/reference/plugin.md lists the rights that each command needs`},
		{"another label", []runtime.Object{moved}, overtakenBy(func(c *v1beta1.Cluster) { c.Labels = map[string]string{"theirs": "too"} }), changed},
		{"another endpoint", []runtime.Object{moved}, overtakenBy(func(c *v1beta1.Cluster) { c.Spec.Endpoints[0].URL = "https://theirs.example" }), changed},
		{"another object of the name", []runtime.Object{moved}, overtakenBy(func(c *v1beta1.Cluster) { c.UID = "other" }), changed},
		{"none any more", []runtime.Object{moved}, overtakenBy(func(c *v1beta1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: commandtest.Now} }), changed},
		{"a conflict about something else", []runtime.Object{moved}, fails("update", apierrors.NewConflict(resource.GroupResource(), "east", errors.New("another request is giving its spec.id to a cluster"))), `update the cluster east: Operation cannot be fulfilled on clusters.clusterregistry.k8s.io "east": another request is giving its spec.id to a cluster`},
	} {
		env := commandtest.New(t, test.entries...)
		test.happens(env)
		text, code := env.Run(t, newJoin(env, idOfEast), "east", "--cluster-kubeconfig", write(t, kubeconfig), "--cluster-context", "east")
		if code != 1 || text != test.text {
			t.Errorf("%s: exit code %d with\n%s\nwant\n%s", test.reason, code, text, test.text)
		}
	}
}

// TestJoinReportsOnlyItsOwn expects that nothing is written to the status of a cluster
// that has taken the place of the one that joined.
func TestJoinReportsOnlyItsOwn(t *testing.T) {
	for reason, change := range map[string]func(*v1beta1.Cluster){
		"another object":   func(c *v1beta1.Cluster) { c.UID = "other" },
		"another identity": func(c *v1beta1.Cluster) { c.Spec.ID = "other" },
		"none":             func(c *v1beta1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: commandtest.Now} },
	} {
		env := commandtest.New(t)
		overtaken(env, "update", "status", 1, change)
		if text, code := env.Run(t, newJoin(env, idOfEast), "east", "--cluster-kubeconfig", write(t, kubeconfig), "--cluster-context", "east"); code != 0 {
			t.Errorf("%s: %s", reason, text)
		}
		if !strings.HasSuffix(env.Stderr.String(), "v1.37.1, was not written to its status: it was changed meanwhile\n") {
			t.Errorf("%s: it says %s", reason, env.Stderr)
		}
		if made, err := env.Clusters.ClusterregistryV1beta1().Clusters().Get(t.Context(), "east", metav1.GetOptions{}); err == nil && made.Status != nil {
			t.Errorf("%s: it has the status %+v", reason, made.Status)
		}
	}
}

// TestUnjoinRefused expects the reason when the registry doesn't delete what was shown.
func TestUnjoinRefused(t *testing.T) {
	for _, test := range []struct {
		reason string
		err    error
		text   string
	}{
		{"another one has taken the name", apierrors.NewConflict(resource.GroupResource(), "east", errors.New("the UID in the precondition (a) does not match the UID in record (b)")), `delete the cluster east: Operation cannot be fulfilled on clusters.clusterregistry.k8s.io "east": the UID in the precondition (a) does not match the UID in record (b)`},
		{"no right", apierrors.NewForbidden(resource.GroupResource(), "east", errors.New("no")), `delete the cluster east: clusters.clusterregistry.k8s.io "east" is forbidden: no; docs/reference/plugin.md lists the rights that each command needs`},
	} {
		env := commandtest.New(t, entry("east", idOfEast))
		env.Clusters.PrependReactor("delete", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.err })
		if text, code := env.Run(t, NewUnjoin(env.Env), "east", "--yes"); code != 1 || text != test.text {
			t.Errorf("%s: %d, %s", test.reason, code, text)
		}
	}
}

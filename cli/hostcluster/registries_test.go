package hostcluster

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

func registry(namespace, name string, spec any) runtime.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Kind.GroupVersion().String(), "kind": Kind.Kind, "metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec,
	}}
}

// TestFindErrors has each way in which a name means no ClusterRegistry, or none that this
// plugin understands.
func TestFindErrors(t *testing.T) {
	fleet, other := registry("a", "fleet", map[string]any{}), registry("b", "fleet", map[string]any{})
	missing := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404, Message: "the server could not find the requested resource"}}
	for _, test := range []struct {
		reason          string
		objects         []runtime.Object
		fails           error
		namespace, name string
		text            string
		code            int
	}{
		{reason: "none at all", text: "the host cluster (context hub) has no ClusterRegistry that you may see: name another one with --context, or create one", code: 2},
		{reason: "another name", objects: []runtime.Object{fleet}, name: "west\x1b", text: `there is no ClusterRegistry "west": there are a/fleet`, code: 2},
		{reason: "two of the name", objects: []runtime.Object{other, fleet}, name: "fleet", text: "there are a/fleet, b/fleet: name one of them, with -n for its namespace", code: 2},
		{reason: "two, and no name", objects: []runtime.Object{fleet, other}, text: "there are a/fleet, b/fleet: name one of them, with -n for its namespace", code: 2},
		{reason: "two of the name, and a namespace", objects: []runtime.Object{fleet, other}, name: "fleet", namespace: "b"},
		{reason: "a form of another operator", objects: []runtime.Object{registry("a", "fleet", "new")}, text: "list the ClusterRegistries: read ClusterRegistry a/fleet: cannot restore struct from: string; this plugin may be too old for the operator", code: 1},
		{reason: "no operator", fails: missing, text: "list the ClusterRegistries: the host cluster (context hub) has no ClusterRegistries: the operator is not installed there; name the context of the host cluster with --context", code: 1},
		{reason: "no right", fails: apierrors.NewForbidden(Resource.GroupResource(), "", errors.New("no")), text: "list the ClusterRegistries: clusterregistries.operator.clusterregistry.io is forbidden: no; docs/reference/plugin.md lists the rights that each command needs", code: 1},
	} {
		env := commandtest.New(t).WithObjects(t, test.objects...)
		env.Flags.Namespace = &test.namespace
		if test.fails != nil {
			env.Objects.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.fails })
		}
		found, err := Find(t.Context(), env.Env, test.name)
		switch {
		case err == nil && (test.code != 0 || found.Namespace != test.namespace):
			t.Errorf("%s: it finds %s/%s", test.reason, found.Namespace, found.Name)
		case err != nil && (err.Error() != test.text || command.ExitCode(err) != test.code || strings.Contains(err.Error(), "\x1b")):
			t.Errorf("%s: %d, %v", test.reason, command.ExitCode(err), err)
		}
	}
}

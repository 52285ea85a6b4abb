package clusterregistry

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

func labelled(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// TestReach has namespaces that are open, closed, open to others and terminating, and
// registries that may reach others and may not.
func TestReach(t *testing.T) {
	terminating := labelled("ending", map[string]string{"registry.clusterregistry.io/fleet": "team"})
	terminating.Finalizers, terminating.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: metav1.Now().Time}
	namespaces := []client.Object{
		labelled("open", map[string]string{"registry.clusterregistry.io/fleet": "team"}), labelled("closed", nil),
		labelled("other", map[string]string{"registry.clusterregistry.io/hub": "team"}), labelled("foreign", map[string]string{"registry.clusterregistry.io/fleet": "elsewhere"}), terminating,
	}
	for _, test := range []struct {
		reason, spec     string
		allowed, managed []string
		want, says       string
	}{
		{"no function", "{}", []string{"*"}, nil, "", ""},
		{"its own namespace needs nothing", "{exports: [{format: ClusterProfile, namespace: team}]}", nil, nil, "team", ""},
		{"an open namespace, of both functions", "{clusterAPI: {namespaces: [open]}, exports: [{format: ClusterProfile, namespace: open}, {format: ClusterProfile, namespace: team}]}", []string{"team"}, nil, "open team", ""},
		{"no administrator has said so", "{clusterAPI: {namespaces: [open, team]}}", []string{"elsewhere"}, nil, "team", "adds team to --aggregated-namespaces"},
		{"an operator of some namespaces", "{clusterAPI: {namespaces: [open]}}", []string{"*"}, []string{"team", "open"}, "", "this operator manages some namespaces only"},
		{"a closed one", "{clusterAPI: {namespaces: [open, closed]}}", []string{"*"}, nil, "open", "kubectl label namespace closed registry.clusterregistry.io/fleet=team"},
		{"open to another registry", "{clusterAPI: {namespaces: [other]}}", []string{"*"}, nil, "", "kubectl label namespace other registry.clusterregistry.io/fleet=team"},
		{"open to a registry of the name elsewhere", "{clusterAPI: {namespaces: [foreign]}}", []string{"*"}, nil, "", "kubectl label namespace foreign"},
		{"a terminating one, and none", "{clusterAPI: {namespaces: [gone, ending]}}", []string{"*"}, nil, "", "kubectl label namespace ending gone "},
	} {
		s := look(t, "{spec: {mode: Aggregated, controllers: "+test.spec+"}}")
		s.Live = fake.NewClientBuilder().WithObjects(namespaces...).Build()
		r := &Reconciler{AggregatedNamespaces: test.allowed, Namespaces: test.managed}
		if err := r.readReach(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		if got := strings.Join(s.reach.namespaces, " "); got != test.want || !strings.Contains(s.reach.refused, test.says) || (s.reach.refused == "") != (test.says == "") {
			t.Errorf("%s: it reaches %q, %q", test.reason, got, s.reach.refused)
		}
	}
}

// cached returns what the operator's cache holds of a namespace with some labels.
func cached(t *testing.T, labels map[string]string) client.Object {
	t.Helper()
	namespace := informers.Namespace()
	namespace.Name, namespace.Labels = "a", labels
	held, err := informers.Options(nil).DefaultTransform(namespace)
	if err != nil {
		t.Fatal(err)
	}
	return held.(client.Object)
}

// TestOpenedNamespaces expects a call for the registries that a change of a namespace
// concerns, and none where it concerns none.
func TestOpenedNamespaces(t *testing.T) {
	registry := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet"}}
	r := &Reconciler{}
	r.Client = operandtest.Host(t, registry.DeepCopy()).Client
	trigger := r.openedNamespaces()
	plain, open := cached(t, map[string]string{"x": "y"}), cached(t, map[string]string{"x": "y", "registry.clusterregistry.io/fleet": "team", "registry.clusterregistry.io/hub": "team"})
	ending := open.DeepCopyObject().(client.Object)
	ending.SetDeletionTimestamp(new(metav1.Now()))
	of := func(before, after client.Object) int { return len(trigger.Of(t.Context(), before, after)) }
	got := []int{of(nil, plain), of(plain, plain), of(open, open), of(nil, open), of(open, plain), of(plain, open), of(open, ending)}
	if want := []int{0, 0, 0, 1, 1, 1, 1}; !slices.Equal(got, want) { // there is no registry hub
		t.Errorf("it calls for %v registries, want %v", got, want)
	}
	if calls := trigger.Of(t.Context(), open, plain); calls[0].NamespacedName != client.ObjectKeyFromObject(registry) {
		t.Errorf("it calls for %s", calls[0])
	}
	r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return apierrors.NewServerTimeout(schema.GroupResource{Resource: "clusterregistries"}, "get", 1)
	}})
	if n := of(nil, open); n != 2 {
		t.Errorf("where it is not known which registries exist, it calls for %d of 2", n)
	}
}

package clusterregistry

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestTriggers has a registry be reconciled for itself and for what is labeled as its own, but
// not for its status, which the operator writes; and what can't be watched yet, later.
func TestTriggers(t *testing.T) {
	r := &Reconciler{HostCluster: operandtest.Host(t)}
	var late []client.Object
	refuse := errors.New("not served")
	triggers := r.Triggers(func(trigger Trigger) error {
		if refuse == nil {
			late = append(late, trigger.Kind)
		}
		return refuse
	})
	before := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet", Generation: 1, ResourceVersion: "1"}}
	status, spec := before.DeepCopy(), before.DeepCopy()
	status.ResourceVersion, spec.ResourceVersion, spec.Generation = "2", "2", 2
	if a, b := triggers[0].Of(t.Context(), before, status), triggers[0].Of(t.Context(), before, spec); len(a) != 0 || len(b) != 1 || b[0].NamespacedName != client.ObjectKeyFromObject(before) {
		t.Errorf("a change of the status calls for %v, one of the spec for %v", a, b)
	}
	pod := operandtest.Secret("fleet-x", nil) // labeled
	moved := pod.DeepCopy()
	moved.Labels[operatorv1alpha1.LabelInstance] = "hub"
	for _, trigger := range triggers {
		if _, is := trigger.Kind.(*corev1.Pod); !is {
			continue
		}
		if n := []int{len(trigger.Of(t.Context(), nil, pod)), len(trigger.Of(t.Context(), pod, nil)), len(trigger.Of(t.Context(), pod, pod)), len(trigger.Of(t.Context(), pod, moved))}; n[0] != 1 || n[1] != 1 || n[2] != 1 || n[3] != 2 {
			t.Errorf("pods call for %v registries", n)
		}
	}
	if r.certManager.Watch() == nil || r.backupKind.Watch() == nil {
		t.Error("what can't be watched counts as watched")
	}
	refuse = nil
	if err := errors.Join(r.certManager.Watch(), r.backupKind.Watch()); err != nil || len(late) != 3 {
		t.Errorf("%v are watched, %v", late, err)
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
	plain, open := cached(t, map[string]string{"x": "y"}), cached(t, map[string]string{"x": "y", "registry.clusterregistry.io/fleet": "team", "registry.clusterregistry.io/hub": "team"})
	ending := open.DeepCopyObject().(client.Object)
	ending.SetDeletionTimestamp(new(metav1.Now()))
	calls := func(before, after client.Object) []reconcile.Request {
		all := r.Triggers(nil)
		return all[len(all)-1].Of(t.Context(), before, after)
	}
	of := func(before, after client.Object) int { return len(calls(before, after)) }
	got := []int{of(nil, plain), of(plain, plain), of(open, open), of(nil, open), of(open, plain), of(plain, open), of(open, ending)}
	if want := []int{0, 0, 0, 1, 1, 1, 1}; !slices.Equal(got, want) { // there is no registry hub
		t.Errorf("it calls for %v registries, want %v", got, want)
	}
	if called := calls(open, plain); called[0].NamespacedName != client.ObjectKeyFromObject(registry) {
		t.Errorf("it calls for %s", called[0])
	}
	r.Client = interceptor.NewClient(r.Client.(client.WithWatch), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return apierrors.NewServerTimeout(schema.GroupResource{Resource: "clusterregistries"}, "get", 1)
	}})
	if n := of(nil, open); n != 2 {
		t.Errorf("where it is not known which registries exist, it calls for %d of 2", n)
	}
}

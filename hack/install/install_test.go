package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/hack/access"
)

const system = "clusterregistry-system"

func object(apiVersion, kind, namespace, name string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetNamespace(namespace)
	o.SetName(name)
	for key, value := range fields {
		o.Object[key] = value
	}
	return o
}

// installation is what there is to install, as it is when all of it is well:
// nobody fills in a status here.
func installation() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		object("v1", "Namespace", "", system, nil),
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "clusterregistries.operator.clusterregistry.io", map[string]any{
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}}),
		object("v1", "ServiceAccount", system, "clusterregistry-operator", nil),
		object("apps/v1", "Deployment", system, "clusterregistry-operator", map[string]any{
			"spec":   map[string]any{"replicas": int64(2), "selector": map[string]any{"matchLabels": map[string]any{"app": "operator"}}},
			"status": map[string]any{"replicas": int64(2), "updatedReplicas": int64(2), "availableReplicas": int64(2)}}),
	}
}

// newHost returns a host cluster with the given objects, which logs what is
// applied and deleted.
func newHost(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) (client.Client, *[]string) {
	t.Helper()
	scheme, err := access.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var log []string
	funcs.Apply = func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		live := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o.(runtime.Unstructured).UnstructuredContent())}
		log = append(log, "apply "+live.GetKind())
		if err := c.Apply(ctx, o, options...); err != nil || live.Object["status"] == nil {
			return err
		}
		// Stands for the controllers, who alone can write a status.
		status := live.Object["status"]
		if err := c.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return err
		}
		live.Object["status"] = status
		return c.Status().Update(ctx, live)
	}
	funcs.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
		log = append(log, "delete "+o.GetObjectKind().GroupVersionKind().Kind)
		return c.Delete(ctx, o, options...)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build(), &log
}

func asObjects(list []*unstructured.Unstructured) []client.Object {
	var out []client.Object
	for _, o := range list {
		out = append(out, o)
	}
	return out
}

func TestUp(t *testing.T) {
	var out strings.Builder
	host, log := newHost(t, interceptor.Funcs{})
	for range 2 { // the second time changes nothing
		if err := up(t.Context(), host, &out, installation(), false); err != nil {
			t.Fatal(err)
		}
	}
	once := []string{"apply Namespace", "apply CustomResourceDefinition", "apply ServiceAccount", "apply Deployment"}
	if !slices.Equal(*log, slices.Concat(once, once)) {
		t.Errorf("it did %v", *log)
	}
	for _, text := range []string{"4 objects are applied", "cert-manager is not installed", "the operator runs"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("it does not say %q:\n%s", text, out.String())
		}
	}
}

// until is a writer that ends a context when it is given a text.
type until struct {
	strings.Builder
	text string
	end  func()
}

func (u *until) Write(p []byte) (int, error) {
	if strings.Contains(string(p), u.text) {
		u.end()
	}
	return u.Builder.Write(p)
}

func TestUpSaysWhatIsAwaited(t *testing.T) {
	for _, test := range []struct {
		reason, says string
		change       func([]*unstructured.Unstructured)
	}{
		{"a definition that is not served", "CustomResourceDefinition clusterregistries.operator.clusterregistry.io to be served: it is not Established yet", func(objects []*unstructured.Unstructured) {
			unstructured.RemoveNestedField(objects[1].Object, "status")
		}},
		{"pods that don't run", "the operator to be rolled out: Deployment clusterregistry-operator: 2 of 2 pods are up to date, 0 of 2 available", func(objects []*unstructured.Unstructured) {
			unstructured.RemoveNestedField(objects[3].Object, "status", "availableReplicas")
		}},
		{"an old pod that has not ended", "2 of 2 pods are up to date, 2 of 3 available", func(objects []*unstructured.Unstructured) {
			objects[3].Object["status"].(map[string]any)["replicas"] = int64(3)
		}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			host, _ := newHost(t, interceptor.Funcs{})
			objects := installation()
			test.change(objects)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &until{text: test.says, end: cancel}
			if err := up(ctx, host, out, objects, false); err == nil || !strings.Contains(err.Error(), "gave up waiting") {
				t.Errorf("got %v, after:\n%s", err, out)
			}
		})
	}
}

func registry(namespace, name string) *operatorv1alpha1.ClusterRegistry {
	return &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestDown(t *testing.T) {
	all := []string{"delete Deployment", "delete ServiceAccount", "delete CustomResourceDefinition", "delete Namespace"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "data-fleet-etcd-0"}}
	// lists are what a list of registries answers, one time after the other.
	lists := func(answers ...func(*operatorv1alpha1.ClusterRegistryList) error) interceptor.Funcs {
		return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			registries, ok := list.(*operatorv1alpha1.ClusterRegistryList)
			if !ok {
				return c.List(ctx, list, options...)
			}
			answer := answers[0]
			answers = answers[1:]
			return answer(registries)
		}}
	}
	none := func(*operatorv1alpha1.ClusterRegistryList) error { return nil }
	noMatch := func(*operatorv1alpha1.ClusterRegistryList) error {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: operatorv1alpha1.GroupName, Kind: "ClusterRegistry"}}
	}
	one := func(list *operatorv1alpha1.ClusterRegistryList) error {
		list.Items = append(list.Items, *registry("late", "fleet"))
		return nil
	}
	for _, test := range []struct {
		reason  string
		objects []client.Object
		funcs   interceptor.Funcs
		does    []string
		fails   []string
		says    string
	}{
		{reason: "the operator first, its definition and namespace last", objects: asObjects(installation()), does: all, says: "not installed any more"},
		{reason: "nothing is installed", does: all, says: "not installed any more"},
		{reason: "the definition is gone already", funcs: lists(noMatch, noMatch), objects: asObjects(installation()[2:]), does: all, says: "Deployment clusterregistry-system/clusterregistry-operator is removed"},
		{reason: "registries exist", objects: append(asObjects(installation()), registry("a", "fleet"), registry("b", "team")),
			fails: []string{"kubectl delete creg --namespace=a fleet", "kubectl delete creg --namespace=b team"}},
		{reason: "a registry comes while the operator goes", funcs: lists(none, one), objects: asObjects(installation()), does: all[:2],
			fails: []string{"kubectl delete creg --namespace=late fleet", "run make install first"}},
		{reason: "data was retained in the operator's namespace", objects: append(asObjects(installation()), claim), does: all[:3], says: "stays, because the data of deleted registries is in it: PersistentVolumeClaim data-fleet-etcd-0"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var out strings.Builder
			host, log := newHost(t, test.funcs, test.objects...)
			err := down(t.Context(), host, &out, installation())
			if (err != nil) != (len(test.fails) > 0) {
				t.Fatalf("got %v", err)
			}
			for _, text := range test.fails {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error does not say %q: %v", text, err)
				}
			}
			if !slices.Equal(*log, test.does) {
				t.Errorf("it did %v, want %v", *log, test.does)
			}
			if !strings.Contains(out.String(), test.says) {
				t.Errorf("it does not say %q:\n%s", test.says, out.String())
			}
		})
	}
}

package apply

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestBelongs is about objects with the name of one of the registry's: whose they
// are when labels say so, and when they say nothing any more.
func TestBelongs(t *testing.T) {
	labels := func(namespace, name string) map[string]string {
		return map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: namespace, operatorv1alpha1.LabelInstance: name}
	}
	manager := func(name string, operation metav1.ManagedFieldsOperationType) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: "kubectl-label", Operation: metav1.ManagedFieldsOperationUpdate}, {Manager: name, Operation: operation}}
	}
	ours := manager("clusterregistry-operator", metav1.ManagedFieldsOperationApply)
	controller := func(apiVersion, kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "1", Controller: new(true)}}
	}
	object := func(modify func(*corev1.ConfigMap)) client.Object {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-trust"}}
		modify(o)
		return o
	}
	service := func(namespace, name string, fields []metav1.ManagedFieldsEntry) client.Object {
		o := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.clusterregistry.k8s.io", ManagedFields: fields}}
		if name != "" {
			o.Spec.Service = &apiregistrationv1.ServiceReference{Namespace: namespace, Name: name}
		}
		return o
	}
	const operatorAPI = "operator.clusterregistry.io/v1alpha1"
	for _, test := range []struct {
		reason string
		object client.Object
		want   bool
	}{
		{"its labels say so", object(func(o *corev1.ConfigMap) { o.Labels = labels("team", "fleet") }), true},
		{"its labels name another registry, whatever else there is", object(func(o *corev1.ConfigMap) {
			o.Labels, o.ManagedFields, o.OwnerReferences = labels("team", "other"), ours, controller(operatorAPI, "ClusterRegistry", "fleet")
		}), false},
		{"nothing says that the operator made it", object(func(*corev1.ConfigMap) {}), false},
		{"somebody made it and gave it one of our labels", object(func(o *corev1.ConfigMap) {
			o.Labels = map[string]string{operatorv1alpha1.LabelInstance: "fleet"}
			o.ManagedFields = manager("helm", metav1.ManagedFieldsOperationApply)
		}), false},
		{"somebody made it and named the registry its controller", object(func(o *corev1.ConfigMap) {
			o.ManagedFields, o.OwnerReferences = manager("kubectl", metav1.ManagedFieldsOperationUpdate), controller(operatorAPI, "ClusterRegistry", "fleet")
		}), false},
		{"the operator has changed it, but not made it", object(func(o *corev1.ConfigMap) {
			o.ManagedFields = manager("clusterregistry-operator", metav1.ManagedFieldsOperationUpdate)
		}), false},
		{"it lost its labels, and is owned", object(func(o *corev1.ConfigMap) {
			o.ManagedFields, o.OwnerReferences = ours, controller(operatorAPI, "ClusterRegistry", "fleet")
		}), true},
		{"it lost its labels, and outlives the registry, so that nobody owns it", object(func(o *corev1.ConfigMap) { o.ManagedFields = ours }), true},
		{"it lost two labels of three", object(func(o *corev1.ConfigMap) {
			o.ManagedFields, o.Labels = ours, map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy}
		}), true},
		{"it lost its labels, and is another registry's", object(func(o *corev1.ConfigMap) {
			o.ManagedFields, o.OwnerReferences = ours, controller(operatorAPI, "ClusterRegistry", "other")
		}), false},
		{"it lost its labels, and a controller of somebody else's has taken it", object(func(o *corev1.ConfigMap) {
			o.ManagedFields, o.OwnerReferences = ours, controller("example.org/v1", "ClusterRegistry", "fleet")
		}), false},
		{"an APIService that lost its labels and leads to its servers", service("team", "fleet-server", ours), true},
		{"an APIService that lost its labels and leads to another registry's", service("team", "other-server", ours), false},
		{"an APIService that lost its labels and is in another namespace", service("teams", "fleet-server", ours), false},
		{"an APIService that the host has made for a CRD since", service("", "", ours), false},
		{"an APIService of somebody else's that leads to its servers", service("team", "fleet-server", manager("kubectl", metav1.ManagedFieldsOperationUpdate)), false},
	} {
		if got := Belongs(test.object, "team/fleet"); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
	}
}

// newHost returns a host with a cache in front that holds what carries the
// operator's label, without managed fields, and the metadata of ConfigMaps alone.
// It counts what is read from the host itself, and what is applied.
func newHost(t *testing.T, objects ...client.Object) (a *Applier, host client.Client, reads, applies *int) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	reads, applies = new(int), new(int)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	for _, kind := range []string{"ConfigMap", "Secret"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	inner := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithReturnManagedFields().Build()
	live := interceptor.NewClient(inner, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		*reads++
		return c.Get(ctx, key, o, options...)
	}})
	cached := interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, typed := o.(*corev1.ConfigMap); typed {
				t.Error("a whole ConfigMap is read through the cache")
			}
			if err := c.Get(ctx, key, o, options...); err != nil {
				return err
			}
			if o.GetLabels()[operatorv1alpha1.LabelManagedBy] != operatorv1alpha1.ManagedBy {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			o.SetManagedFields(nil)
			return nil
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			*applies++
			return c.Apply(ctx, o, options...)
		},
	})
	return New(cached, live, schema.GroupKind{Kind: "ConfigMap"}), inner, reads, applies
}

// wanted returns one of the registry's objects, as it is applied.
func wanted(kind string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	o.SetNamespace("team")
	o.SetName("fleet-trust")
	o.SetLabels(map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: "fleet"})
	for key, value := range fields {
		o.Object[key] = value
	}
	return o
}

// TestLabelledAway takes the labels of what was applied: it is labelled again, and
// it is deleted with the registry, which an object of somebody else is not.
func TestLabelledAway(t *testing.T) {
	for _, kind := range []string{"ConfigMap", "Secret"} {
		a, host, _, _ := newHost(t)
		object := wanted(kind, map[string]any{"data": map[string]any{"a": "Yg=="}})
		unlabel := func() {
			t.Helper()
			now := object.NewEmptyInstance().(*unstructured.Unstructured)
			if err := host.Get(t.Context(), client.ObjectKeyFromObject(object), now); err != nil {
				t.Fatal(err)
			}
			now.SetLabels(nil)
			if err := host.Update(t.Context(), now, client.FieldOwner("kubectl-label")); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Apply(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		unlabel()
		if err := a.Apply(t.Context(), object); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		now := object.NewEmptyInstance().(*unstructured.Unstructured)
		if err := host.Get(t.Context(), client.ObjectKeyFromObject(object), now); err != nil || Owner(now) != "team/fleet" {
			t.Errorf("%s has labels %v: %v", kind, now.GetLabels(), err)
		}
		unlabel()
		if gone, err := a.Delete(t.Context(), Reference(object), "team/fleet"); gone || err != nil {
			t.Errorf("%s that lost its labels counts as gone: %v", kind, err)
		}
		if err := host.Get(t.Context(), client.ObjectKeyFromObject(object), now); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%s is still there: %v", kind, err)
		}
	}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-trust", Labels: map[string]string{operatorv1alpha1.LabelInstance: "fleet"}}, Data: map[string][]byte{"a": []byte("b")}}
	a, host, _, applies := newHost(t, theirs)
	var notOurs *NotOurs
	if err := a.Apply(t.Context(), wanted("Secret", nil)); !errors.As(err, &notOurs) || *applies > 0 {
		t.Errorf("what somebody else made is taken over: %v", err)
	}
	if gone, err := a.Delete(t.Context(), Reference(wanted("Secret", nil)), "team/fleet"); !gone || err != nil {
		t.Errorf("what somebody else made is waited for: %v", err)
	}
	if err := host.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("what somebody else made is gone: %v", err)
	}
}

// TestMetadataOnly is about objects that the cache has no content of: they are read
// from the host when they have changed, once, and are put right.
func TestMetadataOnly(t *testing.T) {
	a, host, reads, applies := newHost(t)
	object := wanted("ConfigMap", map[string]any{"data": map[string]any{"ca.crt": "mine"}})
	expect := func(what string, wantReads, wantApplies int) {
		t.Helper()
		*reads, *applies = 0, 0
		if err := a.Apply(t.Context(), object); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if *reads != wantReads || *applies != wantApplies {
			t.Errorf("%s: %d reads from the host, %d writes; want %d, %d", what, *reads, *applies, wantReads, wantApplies)
		}
	}
	edit := func(change func(*corev1.ConfigMap)) {
		t.Helper()
		now := &corev1.ConfigMap{}
		if err := host.Get(t.Context(), client.ObjectKeyFromObject(object), now); err != nil {
			t.Fatal(err)
		}
		change(now)
		if err := host.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	expect("it is new", 1, 1)
	expect("nothing has changed", 0, 0)
	edit(func(now *corev1.ConfigMap) { now.Data["ca.crt"] = "another" })
	expect("its content was changed", 1, 1)
	now := &corev1.ConfigMap{}
	if err := host.Get(t.Context(), client.ObjectKeyFromObject(object), now); err != nil || now.Data["ca.crt"] != "mine" {
		t.Errorf("it is not put right: %v, %v", now.Data, err)
	}
	expect("nothing has changed since", 0, 0)
	edit(func(now *corev1.ConfigMap) {
		now.ManagedFields = append(now.ManagedFields[:0:0], now.ManagedFields...)
		now.ManagedFields = now.ManagedFields[:1]
	})
	expect("what is not compared has changed", 1, 0)
	expect("and that is known", 0, 0)
}

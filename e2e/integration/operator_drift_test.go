package integration

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// edits are what somebody breaks in an object of each kind: where, and what to.
var edits = map[string]struct {
	path  []string
	value any
}{
	"ConfigMap":           {[]string{"data", "serving-ca.crt"}, "another"},
	"Service":             {[]string{"spec", "selector", "app.kubernetes.io/component"}, "nobody"},
	"ServiceAccount":      {[]string{"automountServiceAccountToken"}, true},
	"Deployment":          {[]string{"spec", "replicas"}, int64(7)},
	"StatefulSet":         {[]string{"spec", "replicas"}, int64(2)},
	"PodDisruptionBudget": {[]string{"spec", "maxUnavailable"}, int64(3)},
	"NetworkPolicy":       {[]string{"spec", "podSelector", "matchLabels", "app.kubernetes.io/component"}, "nobody"},
	"Certificate":         {[]string{"spec", "duration"}, "1h0m0s"},
	"Issuer":              {[]string{"metadata", "labels", "app.kubernetes.io/component"}, "nobody"},
	"ClusterRoleBinding":  {[]string{"metadata", "annotations", "operator.clusterregistry.io/stage"}, "nobody"},
	"RoleBinding":         {[]string{"metadata", "annotations", "operator.clusterregistry.io/stage"}, "nobody"},
	"APIService":          {[]string{"spec", "versionPriority"}, int64(11)},
}

// testDrift edits an object of each kind, takes its labels away and deletes it; all
// comes back.
func testDrift(t *testing.T, s *site) {
	s.apply("fleet", "{mode: Aggregated, etcd: {replicas: 3}}")
	s.says("fleet", "EtcdReady", "False", "MembersNotReady")
	s.apply("other", "{mode: Aggregated}")
	s.holds("other", "APIService/v1alpha1.clusterregistry.k8s.io")
	seen := map[string]bool{}
	for _, registry := range []string{"fleet", "other"} {
		objects := s.objects(registry)
		// It comes back only while a server answers, and what follows replaces servers.
		slices.SortStableFunc(objects, func(a, b unstructured.Unstructured) int {
			return cmp.Compare(rank(a.GetKind()), rank(b.GetKind()))
		})
		for _, object := range objects {
			kind, edit := object.GetKind(), edits[object.GetKind()]
			if seen[kind+registry] || kind == "ConfigMap" && object.GetName() != registry+"-trust" {
				continue
			}
			seen[kind], seen[kind+registry] = true, true
			before, found, err := unstructured.NestedFieldCopy(object.Object, edit.path...)
			if err != nil || !found {
				t.Fatalf("%s has no %v: %v", kind, edit.path, err)
			}
			broken := object.DeepCopy()
			if err := unstructured.SetNestedField(broken.Object, edit.value, edit.path...); err != nil {
				t.Fatal(err)
			}
			if err := s.Patch(t.Context(), broken, client.MergeFrom(&object)); err != nil {
				t.Fatal(err)
			}
			s.eventually(kind+" "+object.GetName()+" to be repaired", func(ctx context.Context) error { return s.is(ctx, object, edit.path, before) })
			s.labelledAway(&object)
			if err := s.Delete(t.Context(), object.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			s.eventually(kind+" "+object.GetName()+" to be back", func(ctx context.Context) error { return s.is(ctx, object, edit.path, before) })
		}
	}
	for kind := range edits {
		if !seen[kind] {
			t.Errorf("no %s was found to break", kind)
		}
	}
	s.gone(s.deleted("other")) // the host has room for one
}

// rank has an APIService come before all else.
func rank(kind string) int {
	if kind == "APIService" {
		return 0
	}
	return 1
}

// labelledAway takes all labels of an object and waits until they are back.
func (s *site) labelledAway(object *unstructured.Unstructured) {
	s.t.Helper()
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(object.GroupVersionKind())
	s.unlabel(client.ObjectKeyFromObject(object), now)
	s.eventually(object.GetKind()+" "+object.GetName()+" to have its labels again", func(ctx context.Context) error {
		if err := s.Get(ctx, client.ObjectKeyFromObject(object), now); err != nil {
			return err
		}
		if !reflect.DeepEqual(now.GetLabels(), object.GetLabels()) {
			return fmt.Errorf("it has %v, and had %v", now.GetLabels(), object.GetLabels())
		}
		return nil
	})
}

// unlabel takes all labels of an object, which it reads into object.
func (s *site) unlabel(key client.ObjectKey, object client.Object) {
	s.t.Helper()
	if err := s.Get(s.t.Context(), key, object); err != nil {
		s.t.Fatal(err)
	}
	before := object.DeepCopyObject().(client.Object)
	object.SetLabels(nil)
	if err := s.Patch(s.t.Context(), object, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

// is returns nil when an object has a value again.
func (s *site) is(ctx context.Context, object unstructured.Unstructured, path []string, want any) error {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(object.GroupVersionKind())
	if err := s.Get(ctx, client.ObjectKeyFromObject(&object), now); err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedFieldCopy(now.Object, path...); !reflect.DeepEqual(got, want) || now.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%v is %v, and was %v", path, got, want)
	}
	return nil
}

// testPruning takes optional parts of a spec away.
func testPruning(t *testing.T, s *site) {
	framework.Create(t, s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "issuers", Namespace: s.namespace}})
	s.apply("fleet", `{mode: Independent, tls: {renewBefore: 24h}, server: {replicas: 2, extraArgs: {v: "4"}, nodeSelector: {a: b}, authentication: {configMapRef: {name: issuers}},
		service: {type: NodePort, hostnames: [registry.example], annotations: {example.org/a: b}}}}`)
	s.ready("fleet")
	s.holds("fleet", "PodDisruptionBudget/fleet-server Certificate/fleet-serving-ca")
	s.change(func(r *operatorv1alpha1.ClusterRegistry) {
		r.Spec.Server, r.Spec.TLS.RenewBefore = operatorv1alpha1.Server{Replicas: 1}, nil
	})
	s.holds("fleet", "-PodDisruptionBudget/fleet-server")
	s.eventually("the objects to follow the spec", func(ctx context.Context) error {
		d, service := &appsv1.Deployment{}, &corev1.Service{}
		if err := s.Get(ctx, s.key("fleet-server"), d); err != nil {
			return err
		}
		if err := s.Get(ctx, s.key("fleet-server"), service); err != nil {
			return err
		}
		pod := d.Spec.Template.Spec
		if *d.Spec.Replicas != 1 || len(pod.Volumes) != 4 || len(pod.NodeSelector) != 0 || slices.ContainsFunc(pod.Containers[0].Args, func(arg string) bool { return arg == "--v=4" || len(arg) > 23 && arg[:23] == "--authentication-config" }) {
			return fmt.Errorf("the Deployment is %+v", d.Spec)
		}
		if service.Spec.Type != corev1.ServiceTypeClusterIP || service.Spec.Ports[0].NodePort != 0 || service.Annotations["example.org/a"] != "" {
			return fmt.Errorf("the Service is %+v", service)
		}
		for _, object := range s.objects("fleet") {
			if object.GetName() != "fleet-serving" {
				continue
			}
			names, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "dnsNames")
			_, renews, _ := unstructured.NestedString(object.Object, "spec", "renewBefore")
			if slices.Contains(names, "registry.example") || renews {
				return fmt.Errorf("the Certificate is %v", object.Object["spec"])
			}
		}
		return nil
	})
	s.eventually("the inventory to be without what was deleted", func(ctx context.Context) error {
		r := &operatorv1alpha1.ClusterRegistry{}
		if err := s.Get(ctx, s.key("fleet"), r); err != nil {
			return err
		}
		if slices.ContainsFunc(r.Status.Inventory, func(reference operatorv1alpha1.ObjectReference) bool { return reference.Kind == "PodDisruptionBudget" }) {
			return fmt.Errorf("it has %v", r.Status.Inventory)
		}
		return nil
	})
	s.ready("fleet")
}

// testSteady wakes the operator up again and again although there is nothing to
// do, and expects that it writes nothing.
func testSteady(t *testing.T, s *site, audit *framework.Audit) {
	s.apply("fleet", "{mode: Independent}")
	s.ready("fleet")
	// Each look begins with a read of the registry itself.
	looks := func() (looks int, writes []string) {
		for _, event := range audit.Events() {
			if event.ObjectRef == nil || event.ObjectRef.Namespace != s.namespace {
				continue
			}
			switch event.Verb {
			case "get":
				if event.ObjectRef.Resource == "clusterregistries" {
					looks++
				}
			case "create", "update", "patch", "delete", "deletecollection":
				writes = append(writes, event.Verb+" "+event.RequestURI)
			}
		}
		return looks, writes
	}
	wake := func(times int) {
		t.Helper()
		for i := range times {
			before, _ := looks()
			d := &appsv1.Deployment{}
			s.get("fleet-server", d)
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: fmt.Sprintf("Round%d", i), LastUpdateTime: metav1.Now()}}
			if err := s.Status().Update(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			s.eventually("the operator to look", func(context.Context) error {
				if now, _ := looks(); now == before {
					return fmt.Errorf("it has looked %d times", now)
				}
				return nil
			})
		}
	}
	wake(2)
	_, before := looks()
	wake(5)
	if _, after := looks(); len(after) != len(before) {
		t.Errorf("a steady registry causes writes: %v", after[len(before):])
	}
}

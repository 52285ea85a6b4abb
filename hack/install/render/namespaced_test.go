package render

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// namespaced returns the objects of the example for some namespaces.
func namespaced(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects, err := Directory(fromHere + "manifests/operator-namespaced/example")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// rights takes rules apart: one for each verb, resource and name.
func rights(rules []rbacv1.PolicyRule) map[string]bool {
	out := map[string]bool{}
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						out[strings.TrimSpace(verb+" "+resource+"."+group+" "+name)] = true
					}
				}
			}
		}
	}
	return out
}

// inNoNamespace are the resources of the operator's rules that are in none.
var inNoNamespace = []string{"nodes", "storageclasses", "clusterrolebindings", "clusterroles", "apiservices", "customresourcedefinitions", "clusters", "clusters/status", "clustersets/clusters", "persistentvolumes", "tokenreviews", "subjectaccessreviews"}

// notInSome are rights that the operator for some namespaces does not need: it reads
// each of its namespaces by name.
var notInSome = []string{"list namespaces.", "watch namespaces."}

// TestNamespacedRights compares what the operator for some namespaces may do with
// what the operator for all may: the same in sum but for notInSome, and cluster-wide
// nothing that is in a namespace.
func TestNamespacedRights(t *testing.T) {
	const name = "clusterregistry:operator"
	all := rights(granted(t)[name])
	for _, right := range notInSome {
		delete(all, right)
	}
	objects := namespaced(t)
	wide, roles := map[string]bool{}, map[string]map[string]bool{}
	for _, role := range typed[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		if role.Name != name {
			continue
		}
		wide = rights(role.Rules)
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if !slices.Contains(inNoNamespace, resource) {
					t.Errorf("the ClusterRole has a rule for %s, which are in namespaces", resource)
				}
			}
		}
	}
	for _, role := range typed[rbacv1.Role](t, objects, "Role") {
		roles[role.Namespace] = rights(role.Rules)
	}
	for _, namespace := range []string{"team-a", "team-b"} {
		sum := maps.Clone(wide)
		for right := range roles[namespace] {
			if sum[right] {
				t.Errorf("both the ClusterRole and the Role in %s have %q", namespace, right)
			}
			sum[right] = true
		}
		for right := range all {
			if !sum[right] {
				t.Errorf("the operator lacks %q in %s", right, namespace)
			}
		}
		for right := range sum {
			if !all[right] {
				t.Errorf("the operator has %q in %s, where it does not need it", right, namespace)
			}
		}
	}
	own := granted(t)["clusterregistry-system/"+name]
	more := rights(append(slices.Clone(own), rbacv1.PolicyRule{Verbs: []string{"create", "patch"}, APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}}))
	if !maps.Equal(roles["clusterregistry-system"], more) {
		t.Errorf("in its own namespace it has %v, want %v", slices.Sorted(maps.Keys(roles["clusterregistry-system"])), slices.Sorted(maps.Keys(more)))
	}
	if !maps.Equal(roles["kube-system"], rights(granted(t)["kube-system/"+name])) {
		t.Error("in kube-system it has other rights than the operator for all namespaces")
	}
	if len(roles) != 4 {
		t.Errorf("there are Roles in %v", slices.Sorted(maps.Keys(roles)))
	}
}

// TestNamespacedWatches compares the namespaces that the operator is told to watch
// with those in which it may do anything, and looks for the account behind each
// binding.
func TestNamespacedWatches(t *testing.T) {
	objects := namespaced(t)
	var bound []string
	for _, binding := range typed[rbacv1.RoleBinding](t, objects, "RoleBinding") {
		want := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "clusterregistry-operator", Namespace: "clusterregistry-system"}
		if binding.RoleRef.Kind != "Role" || !slices.Equal(binding.Subjects, []rbacv1.Subject{want}) {
			t.Errorf("RoleBinding %s/%s binds %v to %v", binding.Namespace, binding.Name, binding.RoleRef, binding.Subjects)
		}
		if binding.Namespace != "kube-system" && binding.Namespace != "clusterregistry-system" {
			bound = append(bound, binding.Namespace)
		}
	}
	arguments := typed[appsv1.Deployment](t, objects, "Deployment")[0].Spec.Template.Spec.Containers[0].Args
	i := slices.IndexFunc(arguments, func(argument string) bool { return strings.HasPrefix(argument, "--watch-namespaces=") })
	if i < 0 {
		t.Fatalf("it is not told which namespaces to watch: %v", arguments)
	}
	watched := strings.Split(strings.TrimPrefix(arguments[i], "--watch-namespaces="), ",")
	if slices.Sort(bound); !slices.Equal(bound, watched) {
		t.Errorf("it watches %v, and has Roles in %v", watched, bound)
	}
}

// TestNamespacedIsTheSameOtherwise expects no other differences from the operator
// for all namespaces.
func TestNamespacedIsTheSameOtherwise(t *testing.T) {
	rest := func(objects []*unstructured.Unstructured) map[string]bool {
		out := map[string]bool{}
		for _, object := range objects {
			if !strings.HasPrefix(object.GetNamespace(), "team-") {
				out[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = true
			}
		}
		return out
	}
	if got, want := rest(namespaced(t)), rest(published(t)); !maps.Equal(got, want) {
		t.Errorf("it has %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

package informers

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestOptions is about which objects of a kind the operator holds.
func TestOptions(t *testing.T) {
	options := Options(nil)
	byKind := map[string]cache.ByObject{}
	for object, by := range options.ByObject {
		byKind[kindOf(object)] = by
	}
	ours, others := labels.Set{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy}, labels.Set{operatorv1alpha1.LabelManagedBy: "Helm"}
	for _, test := range []struct {
		reason    string
		kind      client.Object
		unlabeled bool // whether one without the operator's label is held
	}{
		{"users make them", &operatorv1alpha1.ClusterRegistry{}, true},
		{"others make them, and their deletion is noticed", Namespace(), true},
		{"their addresses are read", &corev1.Node{}, true},
		{"one that has lost its labels still leads to a registry", &apiregistrationv1.APIService{}, true},
		{"its own ones only", &corev1.Pod{}, false},
		{"its own ones only", &rbacv1.RoleBinding{}, false},
	} {
		selector := byKind[kindOf(test.kind)].Label
		if selector == nil {
			selector = options.DefaultLabelSelector
		}
		if !selector.Matches(ours) || selector.Matches(others) != test.unlabeled {
			t.Errorf("%s: of %s, %q is selected", test.reason, kindOf(test.kind), selector)
		}
	}
	crds := byKind[kindOf(CertificatesCRD())].Field
	if crds == nil || !crds.Matches(fields.Set{metav1.ObjectNameField: CertificatesCRD().Name}) || crds.Matches(fields.Set{metav1.ObjectNameField: "issuers.cert-manager.io"}) {
		t.Errorf("CRDs that are held: %v", crds)
	}
	if in := byKind[kindOf(&rbacv1.RoleBinding{})].Namespaces; in != nil {
		t.Errorf("RoleBindings are held of %v, want all namespaces", in)
	}
}

// TestOptionsNamespaces is about the namespaces that the operator is made for.
func TestOptionsNamespaces(t *testing.T) {
	if all := Options(nil).DefaultNamespaces; all != nil {
		t.Errorf("an operator of all namespaces is limited to %v", all)
	}
	options := Options([]string{"a", "b"})
	if some := options.DefaultNamespaces; len(some) != 2 || !has(some, "a") {
		t.Errorf("an operator of the namespaces a and b is limited to %v", some)
	}
	for object, by := range options.ByObject {
		if kindOf(object) == kindOf(&rbacv1.RoleBinding{}) && len(by.Namespaces) == 3 && has(by.Namespaces, "b") && has(by.Namespaces, metav1.NamespaceSystem) {
			return
		}
	}
	t.Errorf("RoleBindings are not held of a, b and kube-system: %v", options.ByObject)
}

func has(namespaces map[string]cache.Config, name string) bool { _, is := namespaces[name]; return is }

// kindOf names the kind that an object stands for.
func kindOf(object client.Object) string {
	if metadata, is := object.(*metav1.PartialObjectMetadata); is {
		return metadata.Kind
	}
	return fmt.Sprintf("%T", object)
}

package apply

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// Owner returns namespace and name of the registry that an object belongs to
// according to its labels, or nothing.
func Owner(object client.Object) string {
	labels := object.GetLabels()
	namespace, name := labels[operatorv1alpha1.LabelNamespace], labels[operatorv1alpha1.LabelInstance]
	if labels[operatorv1alpha1.LabelManagedBy] != operatorv1alpha1.ManagedBy || namespace == "" || name == "" {
		return ""
	}
	return namespace + "/" + name
}

// Belongs reports whether an object that has the name of one of a registry's
// objects is that one; owner is the registry, as namespace/name. What the labels
// say counts. An object that has lost them is the registry's if the operator
// applied it, which the host has recorded among the object's managed fields, and
// nothing says that it is for someone else: its controller is the registry, or it
// has none, and an APIService leads to the registry's servers. An object that
// someone else made is never the registry's.
//
// The object is to be read from the host: the operator's cache has no managed
// fields.
func Belongs(object client.Object, owner string) bool {
	if named := Owner(object); named != "" {
		return named == owner
	}
	if !applied(object) {
		return false
	}
	if controller := metav1.GetControllerOf(object); controller != nil {
		return controller.Kind == "ClusterRegistry" && strings.HasPrefix(controller.APIVersion, operatorv1alpha1.GroupName+"/") && object.GetNamespace()+"/"+controller.Name == owner
	}
	if service, is := object.(*apiregistrationv1.APIService); is {
		return Backend(service) == owner+contract.ServerSuffix
	}
	return true
}

// applied reports whether the operator has applied an object.
func applied(object client.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == string(FieldOwner) && entry.Operation == metav1.ManagedFieldsOperationApply
	})
}

// Backend returns the Service behind an APIService, as namespace/name, or nothing
// when the host itself serves that API.
func Backend(service *apiregistrationv1.APIService) string {
	if service.Spec.Service == nil {
		return ""
	}
	return service.Spec.Service.Namespace + "/" + service.Spec.Service.Name
}

// NotOurs is the error of an object that exists, but belongs to someone else.
type NotOurs struct {
	// Object is the object in the way.
	Object operatorv1alpha1.ObjectReference
	// Owner is the registry that it belongs to, empty when it is no registry's.
	Owner string
}

// Error says what to do.
func (e *NotOurs) Error() string {
	owner := "was not made by the operator"
	if e.Owner != "" {
		owner = "belongs to ClusterRegistry " + e.Owner
	}
	return fmt.Sprintf("%s is in the way: it %s; delete it, or give the registry another name", e.Object, owner)
}

// Reason is the reason of the condition that such an error becomes.
func (e *NotOurs) Reason() string { return operatorv1alpha1.ReasonNotOwned }

// Unapplied is the error of an object that the host cluster did not take, or could not be asked
// to.
type Unapplied struct {
	Object operatorv1alpha1.ObjectReference
	Err    error
}

// Error has the host cluster's words.
func (e *Unapplied) Error() string { return fmt.Sprintf("apply %s: %s", e.Object, e.Err) }

// Unwrap returns the error of the request.
func (e *Unapplied) Unwrap() error { return e.Err }

// Reference returns the name of an object by which an inventory knows it.
func Reference(object *unstructured.Unstructured) operatorv1alpha1.ObjectReference {
	kind := object.GroupVersionKind()
	return operatorv1alpha1.ObjectReference{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// FieldOwner is the operator's name as a manager of fields.
const FieldOwner = client.FieldOwner("clusterregistry-operator")

package operation

import (
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/pass"
)

// titles are what people know the operations as: what others wait for while one is under way.
var titles = map[operatorv1alpha1.OperationType]string{
	operatorv1alpha1.OperationUpgrade:         "the upgrade",
	operatorv1alpha1.OperationScale:           "the change of etcd's members",
	operatorv1alpha1.OperationReplacement:     "the change of etcd's members",
	operatorv1alpha1.OperationRotation:        "the rotation of a CA",
	operatorv1alpha1.OperationEncryption:      "the change of the keys to encrypt with",
	operatorv1alpha1.OperationDefragmentation: "the defragmentation of etcd",
}

// Title returns the title of an operation, empty when it is none, or of a type that this operator
// does not know.
func Title(o *operatorv1alpha1.Operation) string {
	if o == nil {
		return ""
	}
	return titles[o.Type]
}

// ChangesMembers reports whether an operation changes etcd's members.
func ChangesMembers(o *operatorv1alpha1.Operation) bool {
	return o != nil && (o.Type == operatorv1alpha1.OperationScale || o.Type == operatorv1alpha1.OperationReplacement)
}

// Awaits says what has an operation begin that is due.
func Awaits(p pass.Pass) string {
	switch title := Title(p.Registry.Status.Operation); {
	case title != "":
		return title + " is complete"
	case p.ReadOnly():
		return p.ReadOnlyUntil()
	case p.Unsteady() != "":
		return "this is resolved: " + p.Unsteady()
	}
	return "nothing else is under way"
}

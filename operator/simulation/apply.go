package simulation

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// remade are the fields that can't be changed.
var remade = map[string][]string{"Job": {"spec", "template"}, "StatefulSet": {"spec", "volumeClaimTemplates"}}

// apply applies an object as the operator, by server-side apply: lists are replaced, and fields
// that were applied before and are not any more go.
func (h *host) apply(wanted *unstructured.Unstructured) (*stored, error) {
	key, before := idOf(wanted), h.objects[idOf(wanted)]
	content := wanted.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp"} {
		unstructured.RemoveNestedField(content.Object, "metadata", field)
	}
	if pinned := wanted.GetUID(); pinned != "" && (before == nil || before.GetUID() != pinned) {
		return nil, conflict(key, "the UID differs")
	}
	if before == nil {
		created := content.DeepCopy()
		created.SetManagedFields(manager)
		after, err := h.create(created)
		if err == nil {
			h.applied[key] = content.Object
		}
		return after, err
	}
	if pinned := wanted.GetResourceVersion(); pinned != "" && pinned != before.GetResourceVersion() {
		return nil, conflict(key, "the object has been modified")
	}
	after, err := h.update(key, func(tree *unstructured.Unstructured) error {
		was := tree.DeepCopy()
		dropped(tree.Object, h.applied[key], content.Object)
		merged(tree.Object, content.DeepCopy().Object)
		tree.SetManagedFields(manager)
		path := remade[key.kind.Kind]
		one, _, _ := unstructured.NestedFieldNoCopy(was.Object, path...)
		other, _, _ := unstructured.NestedFieldNoCopy(tree.Object, path...)
		if len(path) > 0 && !apiequality.Semantic.DeepEqual(one, other) {
			return apierrors.NewInvalid(schema.GroupKind{Group: key.kind.Group, Kind: key.kind.Kind}, key.name, nil)
		}
		return nil
	})
	if err == nil {
		h.applied[key] = content.Object
	}
	return after, err
}

// manager is what is noted of whatever the operator applies.
var manager = []metav1.ManagedFieldsEntry{{Manager: "clusterregistry-operator", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}}}

// dropped removes from a tree what was applied and is not any more.
func dropped(tree, was, is map[string]any) {
	for field, value := range was {
		now, stays := is[field]
		inner, nested := value.(map[string]any)
		if !stays && !nested {
			delete(tree, field)
			continue
		}
		if below, has := tree[field].(map[string]any); has && nested {
			next, _ := now.(map[string]any)
			dropped(below, inner, next)
			if !stays && len(below) == 0 {
				delete(tree, field)
			}
		}
	}
}

package format

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WithOwner adds the owner of an object, if it is to have one, to what is written of its metadata.
func WithOwner(metadata map[string]any, owner *metav1.OwnerReference) map[string]any {
	if owner != nil {
		metadata["ownerReferences"] = []any{map[string]any{"apiVersion": owner.APIVersion, "kind": owner.Kind, "name": owner.Name, "uid": string(owner.UID)}}
	}
	return metadata
}

// HasOwner reports whether an object goes with the owner that it is to have.
func HasOwner(have []metav1.OwnerReference, owner *metav1.OwnerReference) bool {
	if owner == nil {
		return true
	}
	for _, is := range have {
		if is.UID == owner.UID {
			return true
		}
	}
	return false
}

package clusterregistry

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// recordMeta returns the metadata of the record.
func (s *scope) recordMeta() metav1.ObjectMeta {
	meta := s.meta(contract.IdentitySuffix, "etcd")
	meta.Annotations = map[string]string{operatorv1alpha1.AnnotationRetain: "true"}
	return meta
}

// marked reports whether a record has the labels and annotations that it was made
// with.
func marked(record *corev1.ConfigMap, s *scope) bool {
	meta := s.recordMeta()
	return labels.SelectorFromSet(meta.Labels).Matches(labels.Set(record.Labels)) &&
		labels.SelectorFromSet(meta.Annotations).Matches(labels.Set(record.Annotations))
}

// recordReference refers to the record of etcd's identity.
func (s *scope) recordReference() operatorv1alpha1.ObjectReference {
	return operatorv1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: s.registry.Namespace, Name: s.registry.Name + contract.IdentitySuffix}
}

// ownRecord has a record in the inventory that an earlier registry of this name has
// left, which was never applied for this one, and restores its labels and annotations.
func (r *Reconciler) ownRecord(ctx context.Context, s *scope) error {
	if !s.readOnly && s.identity.unmarked {
		id := *s.identity
		id.unmarked = false
		return r.writeIdentity(ctx, s, &id)
	}
	if s.readOnly || slices.Contains(s.registry.Status.Inventory, s.recordReference()) {
		return nil
	}
	return r.writeInventory(ctx, s, append(slices.Clone(s.registry.Status.Inventory), s.recordReference()))
}

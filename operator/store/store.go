// Package store knows what a store of backups needs in the namespace of the registry that uses it.
package store

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Needs says which object of the registry's namespace a store needs that does not exist,
// and what can't be done before; done when there is none. The claim is the one that is the
// store, if any.
func Needs(ctx context.Context, o *operand.Objects, store operatorv1alpha1.BackupStore, field, nothing string) (claim *metav1.PartialObjectMetadata, v verdict.Verdict) {
	needs := map[string]string{"ServiceAccount": store.ServiceAccountName}
	for _, reference := range render.StoreSecrets(store) {
		needs["Secret"] = reference
	}
	if store.PersistentVolumeClaim != nil {
		needs["PersistentVolumeClaim"] = store.PersistentVolumeClaim.ClaimName
	}
	for _, kind := range []string{"Secret", "ServiceAccount", "PersistentVolumeClaim"} {
		if needs[kind] == "" {
			continue
		}
		// The metadata alone: what a Secret contains is for the Job to know.
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		err := o.Live.Get(ctx, o.Named(needs[kind]), object)
		if apierrors.IsNotFound(err) {
			return nil, verdict.Waiting(operatorv1alpha1.ReasonStoreSecretMissing, "%s before %s %s exists, which %s names: create it", nothing, kind, needs[kind], field)
		}
		if err != nil {
			return nil, verdict.Failed(fmt.Errorf("find out whether %s %s of %s exists: %w", kind, needs[kind], field, err))
		}
		if kind == "PersistentVolumeClaim" {
			claim = object
		}
	}
	return claim, verdict.Verdict{}
}

package clusterregistry

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/restore"
	"github.com/clusterregistry/operator/operator/verdict"
)

// restoreSource returns where the backup is that the spec names.
func (r *Reconciler) restoreSource(ctx context.Context, s *scope, from operatorv1alpha1.RestoreFrom) (restoreSource, verdict.Verdict) {
	if from.BackupRef != nil {
		return r.referred(ctx, s, *from.BackupRef, "delete this ClusterRegistry, and create it with ")
	}
	if from.Store == nil {
		return restoreSource{}, refused("spec.restoreFrom names no backup: delete this ClusterRegistry, and create it with backupRef or store") // past the schema
	}
	source := restoreSource{Store: *from.Store, Lineage: from.Lineage, Name: from.Name}
	if from.Before != nil {
		source.Before = from.Before.UTC().Format(time.RFC3339)
	}
	return source, done
}

// referred returns where a ClusterRegistryBackup is; instead begins the sentences that say how
// to name another one. What names the store there is used in the
// registry's own namespace: whoever may create a registry here could otherwise read what
// credentials elsewhere open.
func (r *Reconciler) referred(ctx context.Context, s *scope, ref operatorv1alpha1.BackupReference, instead string) (restoreSource, verdict.Verdict) {
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = s.Registry.Namespace
	}
	if !r.Watches(key.Namespace) {
		return restoreSource{}, refused("ClusterRegistryBackup %s is in a namespace that this operator may not read: delete this ClusterRegistry, and create it with restoreFrom.store, lineage and name", key)
	}
	b, registry := &operatorv1alpha1.ClusterRegistryBackup{}, &operatorv1alpha1.ClusterRegistry{}
	err := s.Live.Get(ctx, key, b)
	switch {
	case apierrors.IsNotFound(err):
		return restoreSource{}, pending("Waiting for ClusterRegistryBackup %s, which does not exist: create it, or delete this ClusterRegistry and create it with another restoreFrom", key)
	case err != nil:
		return restoreSource{}, verdict.Failed(fmt.Errorf("read ClusterRegistryBackup %s: %w", key, err))
	}
	source := restore.Source{ClusterRegistryBackup: b, Namespace: s.Registry.Namespace, Instead: instead}
	switch later, err := source.Refuse(); {
	case later:
		return restoreSource{}, pending("Waiting for %s", err)
	case err != nil:
		return restoreSource{}, refused("%s", err)
	}
	of := client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.RegistryRef.Name}
	switch err := s.Live.Get(ctx, of, registry); {
	case apierrors.IsNotFound(err):
		registry = nil
	case err != nil:
		return restoreSource{}, verdict.Failed(fmt.Errorf("read ClusterRegistry %s: %w", of, err))
	}
	store, err := source.Store(registry)
	if err != nil {
		return restoreSource{}, refused("%s", err)
	}
	return restoreSource{Store: store, Lineage: b.Status.Lineage, Name: b.Status.Name, backup: key.String(), sha256: b.Status.SHA256, keys: b.Status.EncryptionKeys}, done
}

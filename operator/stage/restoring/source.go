package restoring

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

// sourceOf returns where the backup is that the spec names.
func (s *Stage) sourceOf(ctx context.Context, from operatorv1alpha1.RestoreFrom) (source, verdict.Verdict) {
	if from.BackupRef != nil {
		return s.referred(ctx, *from.BackupRef, "delete this ClusterRegistry, and create it with ")
	}
	if from.Store == nil {
		return source{}, refused("spec.restoreFrom names no backup: delete this ClusterRegistry, and create it with backupRef or store") // past the schema
	}
	out := source{Store: *from.Store, Lineage: from.Lineage, Name: from.Name}
	if from.Before != nil {
		out.Before = from.Before.UTC().Format(time.RFC3339)
	}
	return out, done
}

// referred returns where a ClusterRegistryBackup is; instead begins the sentences that say how
// to name another one. What names the store there is used in the
// registry's own namespace: whoever may create a registry here could otherwise read what
// credentials elsewhere open.
func (s *Stage) referred(ctx context.Context, ref operatorv1alpha1.BackupReference, instead string) (source, verdict.Verdict) {
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = s.Registry.Namespace
	}
	if !s.Watches(key.Namespace) {
		return source{}, refused("ClusterRegistryBackup %s is in a namespace that this operator may not read: delete this ClusterRegistry, and create it with restoreFrom.store, lineage and name", key)
	}
	b, registry := &operatorv1alpha1.ClusterRegistryBackup{}, &operatorv1alpha1.ClusterRegistry{}
	err := s.Live.Get(ctx, key, b)
	switch {
	case apierrors.IsNotFound(err):
		return source{}, pending("Waiting for ClusterRegistryBackup %s, which does not exist: create it, or delete this ClusterRegistry and create it with another restoreFrom", key)
	case err != nil:
		return source{}, verdict.Failed(fmt.Errorf("read ClusterRegistryBackup %s: %w", key, err))
	}
	from := restore.Source{ClusterRegistryBackup: b, Namespace: s.Registry.Namespace, Instead: instead}
	switch later, err := from.Refuse(); {
	case later:
		return source{}, pending("Waiting for %s", err)
	case err != nil:
		return source{}, refused("%s", err)
	}
	of := client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.RegistryRef.Name}
	switch err := s.Live.Get(ctx, of, registry); {
	case apierrors.IsNotFound(err):
		registry = nil
	case err != nil:
		return source{}, verdict.Failed(fmt.Errorf("read ClusterRegistry %s: %w", of, err))
	}
	store, err := from.Store(registry)
	if err != nil {
		return source{}, refused("%s", err)
	}
	return source{Store: store, Lineage: b.Status.Lineage, Name: b.Status.Name, backup: key.String(), sha256: b.Status.SHA256, keys: b.Status.EncryptionKeys}, done
}

package clusterregistry

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// restoreSource returns where the backup is that the spec names.
func (r *Reconciler) restoreSource(ctx context.Context, s *scope, from operatorv1alpha1.RestoreFrom) (restoreSource, verdict.Verdict) {
	if from.BackupRef != nil {
		return r.referred(ctx, s, *from.BackupRef)
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

// referred returns where a ClusterRegistryBackup is. What names the store there is used in the
// registry's own namespace: whoever may create a registry here could otherwise read what
// credentials elsewhere open.
func (r *Reconciler) referred(ctx context.Context, s *scope, ref operatorv1alpha1.BackupReference) (restoreSource, verdict.Verdict) {
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = s.Registry.Namespace
	}
	if !r.Watches(key.Namespace) {
		return restoreSource{}, refused("ClusterRegistryBackup %s is in a namespace that this operator may not read: delete this ClusterRegistry, and create it with restoreFrom.store, lineage and name", key)
	}
	// What another namespace says of itself is not repeated to whoever may read this one.
	said := func(before, what, after string) string {
		if key.Namespace != s.Registry.Namespace || what == "" {
			return ""
		}
		return before + what + after
	}
	b, registry := &operatorv1alpha1.ClusterRegistryBackup{}, &operatorv1alpha1.ClusterRegistry{}
	err := s.Live.Get(ctx, key, b)
	switch {
	case apierrors.IsNotFound(err):
		return restoreSource{}, pending("Waiting for ClusterRegistryBackup %s, which does not exist: create it, or delete this ClusterRegistry and create it with another restoreFrom", key)
	case err != nil:
		return restoreSource{}, verdict.Failed(fmt.Errorf("read ClusterRegistryBackup %s: %w", key, err))
	case b.DeletionTimestamp != nil:
		return restoreSource{}, refused("ClusterRegistryBackup %s is being deleted, and with it, by its deletionPolicy, what is stored: delete this ClusterRegistry, and create it with another backup", key)
	case b.Status.Phase == operatorv1alpha1.BackupDamaged:
		return restoreSource{}, refused("ClusterRegistryBackup %s is damaged%s: delete this ClusterRegistry, and create it with another backup", key, said(" (", b.Status.Message, ")"))
	case b.Status.Phase.Ended() && (b.Status.Location == "" || b.Status.Lineage == ""):
		return restoreSource{}, refused("ClusterRegistryBackup %s failed, and is not in its store%s: delete this ClusterRegistry, and create it with another backup", key, said(" (", b.Status.Message, ")"))
	case !b.Status.Phase.Ended():
		return restoreSource{}, pending("Waiting for ClusterRegistryBackup %s, which is not complete%s", key, said(": ", b.Status.Message, ""))
	}
	instead := fmt.Sprintf("delete this ClusterRegistry, and create it with restoreFrom.store, lineage %s and name %s%s", b.Status.Lineage, b.Status.Name, said(" (the backup is at ", b.Status.Location, ")"))
	of := client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.RegistryRef.Name}
	err = s.Live.Get(ctx, of, registry)
	switch {
	case apierrors.IsNotFound(err), err == nil && registry.Spec.Backup == nil:
		return restoreSource{}, refused("ClusterRegistry %s, whose spec.backup says where ClusterRegistryBackup %s is stored, is gone or has no spec.backup any more: %s", of, key, instead)
	case err != nil:
		return restoreSource{}, verdict.Failed(fmt.Errorf("read ClusterRegistry %s: %w", of, err))
	}
	store := registry.Spec.Backup.Store
	if claim := render.StoreClaim(store); claim != "" && b.Namespace != s.Registry.Namespace {
		return restoreSource{}, refused("ClusterRegistryBackup %s is in PersistentVolumeClaim %s, which pods of its own namespace alone can mount: restore it there, or copy it to a claim in namespace %s, %s", key, claim, s.Registry.Namespace, instead)
	}
	return restoreSource{Store: store, Lineage: b.Status.Lineage, Name: b.Status.Name, backup: key.String(), sha256: b.Status.SHA256, keys: b.Status.EncryptionKeys}, done
}

package restore

import (
	"fmt"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Source is a ClusterRegistryBackup from which a registry in a namespace is to be restored.
type Source struct {
	*operatorv1alpha1.ClusterRegistryBackup
	// Namespace is that of the registry that is to be restored. What another namespace says
	// of itself is not repeated to whoever may read this one.
	Namespace string
	// Instead begins the sentence that says how to name the backup in another way.
	Instead string
}

// Key returns the namespace and the name of the ClusterRegistryBackup.
func (s Source) Key() string { return s.ClusterRegistryBackup.Namespace + "/" + s.Name }

// Refuse returns why no registry can begin with the backup, nil when one can. It is pending
// when the backup may be complete later.
func (s Source) Refuse() (pending bool, err error) {
	phase, message := s.Status.Phase, s.Status.Message
	switch {
	case s.DeletionTimestamp != nil:
		return false, fmt.Errorf("ClusterRegistryBackup %s is being deleted, and with it, by its deletionPolicy, what is stored: %sanother backup", s.Key(), s.Instead)
	case phase == operatorv1alpha1.BackupDamaged:
		return false, fmt.Errorf("ClusterRegistryBackup %s is damaged%s: %sanother backup", s.Key(), s.said(" (", message, ")"), s.Instead)
	case phase.Ended() && (s.Status.Location == "" || s.Status.Lineage == ""):
		return false, fmt.Errorf("ClusterRegistryBackup %s failed, and is not in its store%s: %sanother backup", s.Key(), s.said(" (", message, ")"), s.Instead)
	case !phase.Ended():
		return true, fmt.Errorf("ClusterRegistryBackup %s, which is not complete%s", s.Key(), s.said(": ", message, ""))
	}
	return false, nil
}

// Store returns the store that the backup is in, as its ClusterRegistry says, which is nil when
// it is gone; or why the backup can't be reached through it.
func (s Source) Store(registry *operatorv1alpha1.ClusterRegistry) (operatorv1alpha1.BackupStore, error) {
	instead := fmt.Sprintf("%srestoreFrom.store, lineage %s and name %s%s", s.Instead, s.Status.Lineage, s.Status.Name, s.said(" (the backup is at ", s.Status.Location, ")"))
	if registry == nil || registry.Spec.Backup == nil {
		return operatorv1alpha1.BackupStore{}, fmt.Errorf("ClusterRegistry %s/%s, whose spec.backup says where ClusterRegistryBackup %s is stored, is gone or has no spec.backup any more: %s", s.ClusterRegistryBackup.Namespace, s.Spec.RegistryRef.Name, s.Key(), instead)
	}
	store := registry.Spec.Backup.Store
	if claim := store.PersistentVolumeClaim; claim != nil && s.ClusterRegistryBackup.Namespace != s.Namespace {
		return operatorv1alpha1.BackupStore{}, fmt.Errorf("ClusterRegistryBackup %s is in PersistentVolumeClaim %s, which pods of its own namespace alone can mount: restore it there, or copy it to a claim in namespace %s, %s", s.Key(), claim.ClaimName, s.Namespace, instead)
	}
	return store, nil
}

// said returns a text that the backup says of itself, between two others, nothing when it is
// not to be repeated or is empty.
func (s Source) said(before, what, after string) string {
	if s.ClusterRegistryBackup.Namespace != s.Namespace || what == "" {
		return ""
	}
	return before + what + after
}

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RestoreFrom names the backup that a new registry begins with.
//
// +kubebuilder:validation:XValidation:rule="has(self.backupRef) != has(self.store)",message="name one backup: either a ClusterRegistryBackup (backupRef), or a store, a lineage, and one of name, latest and before"
// +kubebuilder:validation:XValidation:rule="has(self.store) == has(self.lineage)",message="a store has the backups of many registries, each in the directory of its lineage: set lineage with store, and not with backupRef"
// +kubebuilder:validation:XValidation:rule="(has(self.name) ? 1 : 0) + (has(self.latest) ? 1 : 0) + (has(self.before) ? 1 : 0) == (has(self.store) ? 1 : 0)",message="with store, set exactly one of name, latest and before, and with backupRef none of them"
// +kubebuilder:validation:XValidation:rule="!has(self.store) || !has(self.store.persistentVolumeClaim) || !has(self.store.serviceAccountName)",fieldPath=".store.serviceAccountName",message="a PersistentVolumeClaim is mounted, and takes no identity: remove store.serviceAccountName"
type RestoreFrom struct {
	// backupRef names a ClusterRegistryBackup. It is read from the store that spec.backup of
	// its ClusterRegistry names, with the Secret, ServiceAccount or PersistentVolumeClaim of
	// the same name in the namespace of the new registry. Required without store.
	// +optional
	BackupRef *BackupReference `json:"backupRef,omitempty"`

	// store is where the backup is, for one whose ClusterRegistry is gone or elsewhere. Required
	// without backupRef.
	// +optional
	Store *BackupStore `json:"store,omitempty"`

	// lineage is the ID of the data in the store: the name of the directory below the prefix,
	// which status.backup.lineage of the old registry has. Required with store.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="write the name of the directory with the backups, such as 0b9c4b52-7d1f-4b6e-9a51-2f0d7f0c9a11"
	Lineage string `json:"lineage,omitempty"`

	// name is the name of the backup in its lineage.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="write the name of a backup, such as fleet-20260301-0300"
	Name string `json:"name,omitempty"`

	// latest is true to take the newest backup of the lineage that is not known to be
	// damaged.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self",message="set latest to true, or name a backup by name or before"
	Latest *bool `json:"latest,omitempty"`

	// Without the rule, the host cluster would store a list, too: a format lets it through.

	// before is a time: the newest backup that was taken no later, and is not known to be
	// damaged, is used.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self > timestamp('1970-01-01T00:00:00Z')",message="write a time such as 2026-03-01T03:00:00Z"
	Before *metav1.Time `json:"before,omitempty"`
}

// BackupReference names a ClusterRegistryBackup.
type BackupReference struct {
	// name is the name of the ClusterRegistryBackup.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// namespace is the namespace of the ClusterRegistryBackup. Default: that of the registry.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// RestoredStatus says from which backup the data of a registry began.
type RestoredStatus struct {
	// backup is the ClusterRegistryBackup that spec.restoreFrom named, as namespace/name. It
	// is not set when that named a store.
	// +optional
	Backup string `json:"backup,omitempty"`

	// location is where the backup is, such as
	// s3://backups/prod/0b9c4b52/fleet-20260301-0300/manifest.json.
	// +required
	Location string `json:"location"`

	// revision is etcd's revision that the backup holds. The restored etcd begins
	// 1,000,000,000 above it, so that no client of the registry that was saved sees a revision
	// twice. That holds for the first restore under one name: another one, of the same backup
	// or an earlier one, may begin at a revision that clients of the first one have seen, and
	// they have to be started again.
	// +required
	Revision int64 `json:"revision"`

	// takenTime is when the backup was taken: what was written later is not in it.
	// +required
	TakenTime metav1.Time `json:"takenTime"`

	// verifiedTime is when the backup was verified before it was restored. It is not set when
	// it never was.
	// +optional
	VerifiedTime *metav1.Time `json:"verifiedTime,omitempty"`

	// release is the release of the registry that the backup was taken from.
	// +optional
	Release string `json:"release,omitempty"`

	// lineage is the ID of the restored data, under which its own backups are: another one
	// than that of the backup.
	// +optional
	Lineage string `json:"lineage,omitempty"`

	// completionTime is when etcd served the restored data. It is not set before.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

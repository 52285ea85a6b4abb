package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterregistrybackups,shortName=cregb
// +kubebuilder:printcolumn:name="Registry",type=string,JSONPath=`.spec.registryRef.name`,description="The registry that is saved"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="How far the backup is"
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.revision`,description="The revision of etcd that the backup holds"
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.status.bytes`,description="The size of the backup"
// +kubebuilder:printcolumn:name="Verified",type=date,JSONPath=`.status.verifiedTime`,description="When the backup was verified last"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Location",type=string,priority=1,JSONPath=`.status.location`,description="Where the backup is"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`,description="What the backup waits for, or why it failed"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$')",message="metadata.name is the name of the backup in its store: use at most 63 lowercase letters, digits and dashes, with a letter or digit first and last"

// ClusterRegistryBackup is one backup of a registry: of what its etcd holds. Creating the
// object takes the backup, once, in the store that spec.backup of the registry names.
type ClusterRegistryBackup struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's standard metadata. The name is that of the backup in its
	// store.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which registry is saved. It can't be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a backup can't be changed: create another ClusterRegistryBackup"
	Spec ClusterRegistryBackupSpec `json:"spec"`

	// status is what the operator observes.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterRegistryBackupStatus `json:"status,omitempty,omitzero"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ClusterRegistryBackupList is a list of backups.
type ClusterRegistryBackupList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's standard metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the backups.
	Items []ClusterRegistryBackup `json:"items"`
}

// ClusterRegistryBackupSpec says what is saved.
type ClusterRegistryBackupSpec struct {
	// registryRef names the ClusterRegistry, in the namespace of the backup.
	// +required
	RegistryRef LocalObjectReference `json:"registryRef"`

	// deletionPolicy says what happens to the backup in the store when this object is
	// deleted: Retain leaves it there until spec.backup.retention of the registry removes
	// it, and Delete deletes it. Deleting the registry or its namespace deletes no backup.
	// Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy BackupDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// BackupDeletionPolicy says what becomes of a backup whose object is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type BackupDeletionPolicy string

const (
	// BackupDeletionPolicyRetain leaves it in the store.
	BackupDeletionPolicyRetain BackupDeletionPolicy = "Retain"
	// BackupDeletionPolicyDelete deletes it.
	BackupDeletionPolicyDelete BackupDeletionPolicy = "Delete"
)

// ClusterRegistryBackupStatus is what the operator observes of a backup.
type ClusterRegistryBackupStatus struct {
	// observedGeneration is the generation of the spec that the status is about, -1 before the
	// operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is the state of the backup: Pending, Saving and Verifying, in this order, and in the
	// end Completed, Skipped when nothing had changed since the backup before, Failed, or
	// Damaged when it was verified and can't be used.
	// +optional
	Phase BackupPhase `json:"phase,omitempty"`

	// phaseStartedTime is when the phase began.
	// +optional
	PhaseStartedTime *metav1.Time `json:"phaseStartedTime,omitempty"`

	// completionTime is when the backup ended, successfully or not.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// message says what the backup waits for, or why it failed.
	// +optional
	Message string `json:"message,omitempty"`

	// name is the name of the backup in its store: that of this object or, when nothing had
	// changed since, that of the backup before.
	// +optional
	Name string `json:"name,omitempty"`

	// location is where the backup is, such as
	// s3://backups/prod/0b9c4b52/fleet-20260301-0300/manifest.json.
	// +optional
	Location string `json:"location,omitempty"`

	// lineage is the ID of the data that was saved, which is the name of the directory in
	// the store.
	// +optional
	Lineage string `json:"lineage,omitempty"`

	// revision is etcd's revision that the backup holds: all that was written before it is
	// in there.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// bytes is the size of the backup.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// sha256 is the checksum of the backup, in hexadecimal.
	// +optional
	SHA256 string `json:"sha256,omitempty"`

	// etcdVersion is the version of etcd that the backup was taken from.
	// +optional
	EtcdVersion string `json:"etcdVersion,omitempty"`

	// release is the release of the registry that the backup was taken from.
	// +optional
	Release string `json:"release,omitempty"`

	// keys are the numbers of keys in etcd, by resource.
	// +optional
	// +listType=map
	// +listMapKey=resource
	Keys []ResourceKeys `json:"keys,omitempty"`

	// encryptionKeys are the names of the encryption keys without which the backup can't be
	// restored, each with its provider, such as secretbox/2027: those that the servers had
	// when it was taken and, once it is verified, those that anything in it is encrypted
	// with. What was stored in clear needs none. The keys themselves are never in a backup.
	// +optional
	// +listType=atomic
	EncryptionKeys []string `json:"encryptionKeys,omitempty"`

	// takenTime is when the backup was taken. Every write that etcd had acknowledged before
	// is in it.
	// +optional
	TakenTime *metav1.Time `json:"takenTime,omitempty"`

	// verifiedTime is when the backup was test-restored, was found to have what the etcd members
	// had, and all of it was read by a server of the release in force. It is not set when it
	// never was.
	// +optional
	VerifiedTime *metav1.Time `json:"verifiedTime,omitempty"`

	// verifyRequest is the last request to verify the backup again that was carried out,
	// successfully or not: a value of the annotation operator.clusterregistry.io/verify.
	// +optional
	VerifyRequest string `json:"verifyRequest,omitempty"`

	// conditions are Completed, which is True when the backup is in its store and, unless
	// spec.backup.verify is Never, verified, with the phase as its reason; Reconciling, which is
	// True until the backup ends, and Stalled, which is True when it failed or is damaged, both
	// left out otherwise; and Decodable, which is False when the operator can't decode the object.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ResourceKeys is how many keys a resource has in etcd.
type ResourceKeys struct {
	// resource is the name of the resource, such as clusters.
	// +required
	Resource string `json:"resource"`

	// count is the number of keys.
	// +required
	Count int64 `json:"count"`
}

// BackupPhase is how far a backup is.
type BackupPhase string

// The phases of a backup.
const (
	// BackupPending waits for another backup, or for what the message says.
	BackupPending BackupPhase = "Pending"
	// BackupSaving is being taken.
	BackupSaving BackupPhase = "Saving"
	// BackupVerifying is in its store, and is being restored on trial.
	BackupVerifying BackupPhase = "Verifying"
	// BackupCompleted is in its store and, where that is asked for, verified.
	BackupCompleted BackupPhase = "Completed"
	// BackupSkipped was not taken, since nothing had changed since the one before.
	BackupSkipped BackupPhase = "Skipped"
	// BackupFailed was not taken, or could not be verified.
	BackupFailed BackupPhase = "Failed"
	// BackupDamaged was verified, and can't be used.
	BackupDamaged BackupPhase = "Damaged"
)

// Ended reports whether the phase is a last one.
func (p BackupPhase) Ended() bool {
	switch p {
	case BackupCompleted, BackupSkipped, BackupFailed, BackupDamaged:
		return true
	}
	return false
}

// BackupReason is why a backup is taken, the value of AnnotationBackupReason.
type BackupReason string

// The reasons of backups.
const (
	// BackupScheduled is by spec.backup.schedule.
	BackupScheduled BackupReason = "Schedule"
	// BackupManual is by a person.
	BackupManual BackupReason = "Manual"
	// BackupDeletion is before the registry is deleted, by deletionPolicy Snapshot.
	BackupDeletion BackupReason = "Deletion"
	// BackupUpgrade is before an upgrade.
	BackupUpgrade BackupReason = "Upgrade"
	// BackupScale is before etcd goes down to one member.
	BackupScale BackupReason = "Scale"
)

// BackupConditionCompleted is true, of a ClusterRegistryBackup, when it is in its store and
// verified as asked for.
const BackupConditionCompleted = "Completed"

// BackupConditionReconciling and BackupConditionStalled are True, of a ClusterRegistryBackup,
// until it ends, and when it failed or is damaged. They are left out otherwise: tools that wait
// for objects of any kind know these two.
const (
	BackupConditionReconciling = "Reconciling"
	BackupConditionStalled     = "Stalled"
)

// BackupConditionDecodable is False, of a ClusterRegistryBackup, when the operator can't decode
// it: the message names the field. Others don't have it.
const BackupConditionDecodable = "Decodable"

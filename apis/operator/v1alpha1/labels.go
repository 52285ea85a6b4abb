package v1alpha1

// Labels and annotations of what belongs to a registry.
const (
	// LabelManagedBy is on all that the operator makes, with ManagedBy as its value.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the operator's name.
	ManagedBy = "clusterregistry-operator"
	// LabelInstance holds the registry's name.
	LabelInstance = "app.kubernetes.io/instance"
	// LabelNamespace holds the registry's namespace, for objects elsewhere.
	LabelNamespace = GroupName + "/namespace"
	// LabelComponent holds what part of the registry it is.
	LabelComponent = "app.kubernetes.io/component"
	// AnnotationRetain is on what outlives a registry with deletionPolicy Retain.
	AnnotationRetain = GroupName + "/retain"
	// AnnotationReclaimPolicy is on the PersistentVolume of an etcd member that was replaced,
	// with the reclaim policy that it had before it was kept (Retain).
	AnnotationReclaimPolicy = GroupName + "/reclaim-policy"
	// AnnotationHostVersion is on the template of an aggregated registry's servers, with
	// the minor version of the host that they are made for, such as 1.37: a new one
	// replaces them.
	AnnotationHostVersion = GroupName + "/host-version"
	// AnnotationEncryption is on servers that have keys to encrypt with, and on the template
	// of such, with the digest that ends the name of the Secret with these.
	AnnotationEncryption = GroupName + "/encryption"
	// AnnotationAudit is on the template of servers that keep an audit log, with the digest
	// that ends the name of the Secret which says how.
	AnnotationAudit = GroupName + "/audit"
	// AnnotationSnapshot is on the Job that saves etcd, with the name of the snapshot
	// that it takes.
	AnnotationSnapshot = GroupName + "/snapshot"
	// AnnotationReplaceMember is on a registry whose etcd member is to be replaced, with the
	// member's ID in hexadecimal as status.etcd.members has it, or several with commas
	// between them. The new member has another ID, so one value replaces it once.
	AnnotationReplaceMember = GroupName + "/replace-etcd-member"
	// AnnotationDefragment is on a registry whose etcd members are to be defragmented once,
	// with the time of the request in the form of RFC 3339 and, if one member alone is meant,
	// a comma and its name. A member that was defragmented since then is left alone, and a
	// day later all are.
	AnnotationDefragment = GroupName + "/defragment"
	// LabelRegistry is on a ClusterRegistryBackup that the operator makes, with the name of
	// the registry.
	LabelRegistry = GroupName + "/registry"
	// AnnotationBackupReason is on a ClusterRegistryBackup, with the reason why it is taken:
	// see BackupReason. One without it is taken for a person.
	AnnotationBackupReason = GroupName + "/reason"
	// AnnotationVerify is on a ClusterRegistryBackup that is to be verified again, with a value
	// that was not there before, such as the time of the request in the form of RFC 3339. Of a
	// long one the first 64 bytes count. status.verifyRequest has it when that is done, so that
	// one value verifies once.
	AnnotationVerify = GroupName + "/verify"
	// AnnotationBackup is on the Job of a backup, with what it does and to which one.
	AnnotationBackup = GroupName + "/backup"
	// AnnotationApplied is on each Job, with the digest of what the operator has asked for: a
	// webhook of the host cluster may have made something else of that.
	AnnotationApplied = GroupName + "/applied"
	// FinalizerBackup holds the deletion of a ClusterRegistryBackup up whose deletionPolicy
	// is Delete until it is deleted in its store.
	FinalizerBackup = GroupName + "/backup-content"
	// Finalizer holds the deletion of a registry up until nothing of it is left,
	// but for what is retained.
	Finalizer = GroupName + "/cleanup"
)

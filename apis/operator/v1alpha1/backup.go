package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Backup says when what etcd holds is saved, and where backups are kept.
//
// +kubebuilder:validation:XValidation:rule="!has(self.store.persistentVolumeClaim) || !has(self.store.serviceAccountName)",fieldPath=".store.serviceAccountName",message="a PersistentVolumeClaim is mounted, and takes no identity: remove store.serviceAccountName"
type Backup struct {
	// schedule is when a backup is taken, in the five fields of cron: minute, hour, day of the
	// month, month and day of the week (0 or sun is Sunday). None is taken while another is in
	// progress, and missed times count as one. A time that the clocks skip is skipped, and one
	// that they repeat counts twice.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[1-9][0-9]?)?(,([*]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[1-9][0-9]?)?)* ([*]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?(,([*]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?)* ([*]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?(,([*]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?)* ([*]|(0?[1-9]|1[0-2]|[A-Za-z]{3})(-(0?[1-9]|1[0-2]|[A-Za-z]{3}))?)(/[1-9][0-9]?)?(,([*]|(0?[1-9]|1[0-2]|[A-Za-z]{3})(-(0?[1-9]|1[0-2]|[A-Za-z]{3}))?)(/[1-9][0-9]?)?)* ([*]|([0-6]|[A-Za-z]{3})(-([0-6]|[A-Za-z]{3}))?)(/[1-9][0-9]?)?(,([*]|([0-6]|[A-Za-z]{3})(-([0-6]|[A-Za-z]{3}))?)(/[1-9][0-9]?)?)*$')",message="write five fields with one space between two of them: minute, hour, day of the month, month and day of the week, such as 0 * * * *, without a time zone, which is timeZone"
	// +operator-sdk:csv:customresourcedefinitions:displayName="When backups are taken",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Schedule string `json:"schedule"`

	// timeZone is the time zone of schedule, by its name in the IANA database, such as
	// Europe/Berlin. Default: UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$') && self.lowerAscii() != 'local'",message="write the name of a time zone in the IANA database, such as Europe/Berlin or UTC"
	TimeZone string `json:"timeZone,omitempty"`

	// suspend stops scheduled backups. Backups that you create are still taken. Default: false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Suspend scheduled backups",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Suspend bool `json:"suspend,omitempty"`

	// store is where backups are kept: exactly one of s3, gcs, azure and
	// persistentVolumeClaim. When it changes, backups in the previous store stay there.
	// +required
	Store BackupStore `json:"store"`

	// retention says which backups are kept. The newest usable backup and the newest
	// verified one always are. Default: the last 7.
	// +optional
	// +kubebuilder:default={}
	Retention BackupRetention `json:"retention,omitempty,omitzero"`

	// verify is Always to test-restore each backup and compare it with the data of the etcd
	// members, or Never. Default: Always.
	// +optional
	// +kubebuilder:default=Always
	Verify BackupVerification `json:"verify,omitempty"`
}

// BackupVerification says which backups are verified.
//
// +kubebuilder:validation:Enum=Always;Never
type BackupVerification string

const (
	// VerifyAlways verifies each backup.
	VerifyAlways BackupVerification = "Always"
	// VerifyNever verifies none.
	VerifyNever BackupVerification = "Never"
)

// BackupStore is where backups are kept.
//
// +kubebuilder:validation:XValidation:rule="(has(self.s3) ? 1 : 0) + (has(self.gcs) ? 1 : 0) + (has(self.azure) ? 1 : 0) + (has(self.persistentVolumeClaim) ? 1 : 0) == 1",message="name exactly one store: s3, gcs, azure or persistentVolumeClaim"
// +kubebuilder:validation:XValidation:rule="has(self.persistentVolumeClaim) || has(self.serviceAccountName) != (has(self.s3) && has(self.s3.secretRef) || has(self.gcs) && has(self.gcs.secretRef) || has(self.azure) && has(self.azure.secretRef))",message="say how to sign in to the store: either by a Secret (secretRef, in s3, gcs or azure) or by the identity that the platform gives to a ServiceAccount (serviceAccountName, beside s3, gcs or azure)"
type BackupStore struct {
	// s3 is a bucket of Amazon S3, or of a store with its API that has conditional writes.
	// +optional
	S3 *S3Store `json:"s3,omitempty"`

	// gcs is a bucket of Google Cloud Storage.
	// +optional
	GCS *GCSStore `json:"gcs,omitempty"`

	// azure is a container of Azure Blob Storage.
	// +optional
	Azure *AzureStore `json:"azure,omitempty"`

	// persistentVolumeClaim is a volume, which should be on other disks than etcd's volumes.
	// +optional
	PersistentVolumeClaim *VolumeStore `json:"persistentVolumeClaim,omitempty"`

	// serviceAccountName is the ServiceAccount in the registry's namespace to which the platform
	// grants access to the store (workload identity). Required for a bucket or a container
	// without secretRef.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// StorePrefix is what the names of all objects in a store begin with.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$')",message="write one or more parts with '/' between them, each of letters, digits, '_', '-' and '.', of which none begins with '-' or '.', such as prod/registries"
type StorePrefix string

// StoreEndpoint is the URL of a store other than the cloud's own.
//
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https://[^/?#@]+(/[^?#@]*)?$')",message="write an https URL without user, query and fragment, such as https://s3.example.com:9000"
type StoreEndpoint string

// S3Store is a bucket with the API of Amazon S3.
type S3Store struct {
	// bucket is the name of the bucket.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9.-]*[a-z0-9]$')",message="write the name of a bucket: lowercase letters, digits, '.' and '-', with a letter or digit first and last"
	Bucket string `json:"bucket"`

	// prefix is what the names of all objects begin with, such as prod/registries. Default:
	// none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Prefix StorePrefix `json:"prefix,omitempty"`

	// endpoint is the URL of a store other than Amazon's. Default: Amazon's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Endpoint StoreEndpoint `json:"endpoint,omitempty"`

	// region is the region of the bucket. Default: what the platform says, and us-east-1
	// with an endpoint.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="write a region such as eu-central-1"
	Region string `json:"region,omitempty"`

	// caBundle holds the CA certificates, in PEM, base64 encoded, that sign the certificate of
	// the endpoint. At most 64 KiB. Default: those of the system.
	// +optional
	CABundle CABundle `json:"caBundle,omitempty"`

	// secretRef names a Secret with accessKeyID and secretAccessKey, and perhaps a
	// sessionToken. The operator never reads its content. Required without
	// serviceAccountName.
	// +optional
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`
}

// GCSStore is a bucket of Google Cloud Storage.
type GCSStore struct {
	// bucket is the name of the bucket.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=222
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9._-]*[a-z0-9]$')",message="write the name of a bucket: lowercase letters, digits, '.', '_' and '-', with a letter or digit first and last"
	Bucket string `json:"bucket"`

	// prefix is what the names of all objects begin with, such as prod/registries. Default:
	// none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Prefix StorePrefix `json:"prefix,omitempty"`

	// endpoint is the URL of a store other than Google's. Default: Google's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Endpoint StoreEndpoint `json:"endpoint,omitempty"`

	// caBundle holds the CA certificates, in PEM, base64 encoded, that sign the certificate of
	// the endpoint. At most 64 KiB. Default: those of the system.
	// +optional
	CABundle CABundle `json:"caBundle,omitempty"`

	// secretRef names a Secret with the key of a service account, in serviceAccount.json.
	// The operator never reads its content. Required without serviceAccountName.
	// +optional
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`
}

// AzureStore is a container of Azure Blob Storage.
type AzureStore struct {
	// container is the name of the container.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="write the name of a container: lowercase letters, digits and '-', with a letter or digit first and last"
	Container string `json:"container"`

	// account is the storage account.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+$')",message="write the name of a storage account: lowercase letters and digits"
	Account string `json:"account"`

	// prefix is what the names of all objects begin with, such as prod/registries. Default:
	// none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Prefix StorePrefix `json:"prefix,omitempty"`

	// endpoint is the URL of a store other than Azure's. Default: Azure's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Endpoint StoreEndpoint `json:"endpoint,omitempty"`

	// caBundle holds the CA certificates, in PEM, base64 encoded, that sign the certificate of
	// the endpoint. At most 64 KiB. Default: those of the system.
	// +optional
	CABundle CABundle `json:"caBundle,omitempty"`

	// secretRef names a Secret with the key of the storage account, in accountKey.
	// The operator never reads its content. Required without serviceAccountName.
	// +optional
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`
}

// VolumeStore is a volume.
type VolumeStore struct {
	// claimName is the name of a PersistentVolumeClaim in the registry's namespace. The
	// operator never creates or deletes it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a PersistentVolumeClaim"
	ClaimName string `json:"claimName"`

	// path is the directory of the volume below which backups are kept. Default: the
	// volume's root.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Path StorePrefix `json:"path,omitempty"`
}

// BackupRetention says which backups are kept. One that either field keeps is kept.
type BackupRetention struct {
	// keepLast is how many of the newest backups are kept at least, from 1 to 1000. Default:
	// 7.
	// +optional
	// +kubebuilder:default=7
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	KeepLast int32 `json:"keepLast,omitempty"`

	// keepFor is how long each backup is kept at least, up to 87600h (ten years). Its age is
	// measured from the newest backup, so that none is removed once backups fail. Default: only
	// keepLast counts.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) > duration('0s') && duration(self) <= duration('87600h')",message="write how long backups are kept in hours, minutes or seconds, at most 87600h (ten years), such as 720h"
	KeepFor *metav1.Duration `json:"keepFor,omitempty"`
}

// BackupStatus is the state of the backups of a registry.
type BackupStatus struct {
	// lineage is the ID of the data: the name of the directory in the store, below the
	// prefix. A registry that takes over retained data keeps it.
	// +optional
	Lineage string `json:"lineage,omitempty"`

	// lastSuccess is the last backup that succeeded.
	// +optional
	LastSuccess *BackupSuccess `json:"lastSuccess,omitempty"`

	// lastFailure is the last backup that failed.
	// +optional
	LastFailure *BackupFailure `json:"lastFailure,omitempty"`

	// window is the time that the backups with a ClusterRegistryBackup cover.
	// +optional
	Window *BackupWindow `json:"window,omitempty"`

	// nextRun is when the next backup is due. It is not set while none is scheduled.
	// +optional
	NextRun *metav1.Time `json:"nextRun,omitempty"`

	// lastScheduleTime is the time in the schedule of the backup that was begun last.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// deletion is the backup that was taken and verified for deletionPolicy Snapshot. It is
	// set before the first part of the registry is deleted.
	// +optional
	Deletion *BackupSuccess `json:"deletion,omitempty"`

	// pruned is the last backup after which old ones were removed.
	// +optional
	Pruned string `json:"pruned,omitempty"`

	// pruneFailure says since when old backups can't be removed from the store. It is not set
	// while they can be.
	// +optional
	PruneFailure *PruneFailure `json:"pruneFailure,omitempty"`

	// storeUnreachable says since when the store can't be reached. It is not set while it can,
	// or when nothing is to be done there.
	// +optional
	StoreUnreachable *StoreUnreachable `json:"storeUnreachable,omitempty"`
}

// PruneFailure is a time in which old backups can't be removed from a store.
type PruneFailure struct {
	// since is when the first attempt to remove them failed.
	// +required
	Since metav1.Time `json:"since"`

	// nextAttempt is when the next attempt begins, unless one follows another backup before.
	// +required
	NextAttempt metav1.Time `json:"nextAttempt"`

	// message says why the last attempt failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// StoreUnreachable is a time in which a store can't be reached.
type StoreUnreachable struct {
	// since is when the first attempt to reach the store failed.
	// +required
	Since metav1.Time `json:"since"`

	// nextAttempt is when the next attempt begins. It is not set while one is in progress.
	// +optional
	NextAttempt *metav1.Time `json:"nextAttempt,omitempty"`

	// message says why the last attempt failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// BackupSuccess is a backup that succeeded.
type BackupSuccess struct {
	// time is when a backup was last completed, or was not needed since nothing had changed
	// since this one was taken.
	// +required
	Time metav1.Time `json:"time"`

	// name is the name of the backup, in the store and of the ClusterRegistryBackup.
	// +required
	Name string `json:"name"`

	// revision is etcd's revision that the backup holds.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// bytes is the size of the backup.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// location is where the backup is, such as
	// s3://backups/prod/0b9c4b52/fleet-20260301-0300/manifest.json.
	// +optional
	Location string `json:"location,omitempty"`

	// verifiedTime is when the backup was verified last. It is not set when it never was.
	// +optional
	VerifiedTime *metav1.Time `json:"verifiedTime,omitempty"`
}

// BackupFailure is a backup that failed.
type BackupFailure struct {
	// time is when it failed.
	// +required
	Time metav1.Time `json:"time"`

	// name is the name of the ClusterRegistryBackup.
	// +required
	Name string `json:"name"`

	// message says why.
	// +optional
	Message string `json:"message,omitempty"`
}

// BackupWindow is the time that backups cover.
type BackupWindow struct {
	// oldest is when the oldest usable backup was taken.
	// +required
	Oldest metav1.Time `json:"oldest"`

	// newest is when the newest usable backup was taken.
	// +required
	Newest metav1.Time `json:"newest"`
}

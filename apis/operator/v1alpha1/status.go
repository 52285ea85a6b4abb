package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterRegistryStatus is what the operator observes. Nothing in it is copied
// from the spec.
type ClusterRegistryStatus struct {
	// observedGeneration is the generation of the spec that the conditions are about, -1 before
	// the operator has seen the object.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions say whether each part of the registry is ready, and what it waits for:
	// VersionSupported, CertificatesReady, EtcdReady, ServerReady, APIServiceReady (Aggregated)
	// or EndpointReady (Independent), ControllerReady where spec.controllers is set, BackupReady
	// where spec.backup is set, Progressing, Available, which says whether clients are served
	// now, and Ready, which sums them up.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// version is the release that runs: what all servers say of themselves.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:displayName="Version"
	Version string `json:"version,omitempty"`

	// etcdVersion is the version of etcd that runs.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Version of etcd"
	EtcdVersion string `json:"etcdVersion,omitempty"`

	// hostVersion is the version of the host cluster's API server.
	// +optional
	HostVersion string `json:"hostVersion,omitempty"`

	// endpoint is where clients reach the registry.
	// +optional
	Endpoint *Endpoint `json:"endpoint,omitempty"`

	// clientCABundle are the CA certificates, in PEM, whose client certificates the
	// servers accept. When the CA of clients is rotated, the previous one stays here until
	// spec.tls.rotation.drop.client names it; when its Secret was replaced otherwise, until
	// it expires or this field is removed. Independent mode only.
	// +optional
	// +kubebuilder:validation:Format=""
	ClientCABundle []byte `json:"clientCABundle,omitempty"`

	// kubeconfigSecretRef names the Secret with an administrator's kubeconfig,
	// in its key kubeconfig. Independent mode only.
	// +optional
	KubeconfigSecretRef *LocalObjectReference `json:"kubeconfigSecretRef,omitempty"`

	// server is the state of the API servers.
	// +optional
	Server ServerStatus `json:"server,omitempty,omitzero"`

	// encryption names the keys with which the servers encrypt what they store. It is not set
	// while clusters are stored in clear.
	// +optional
	Encryption *EncryptionStatus `json:"encryption,omitempty"`

	// visibility is set while the servers show users only the clusters of their ClusterSets.
	// +optional
	Visibility *VisibilityStatus `json:"visibility,omitempty"`

	// etcd is the state of etcd.
	// +optional
	Etcd EtcdStatus `json:"etcd,omitempty,omitzero"`

	// certificates are the registry's certificates, CAs included.
	// +optional
	// +listType=map
	// +listMapKey=name
	Certificates []CertificateStatus `json:"certificates,omitempty"`

	// operation is the long operation in progress, such as an upgrade.
	// +optional
	Operation *Operation `json:"operation,omitempty"`

	// backup is the state of the backups. It is set only while spec.backup is.
	// +optional
	Backup *BackupStatus `json:"backup,omitempty"`

	// recovery is what is left of an etcd that has lost its quorum for good, or that went back
	// to an older revision than it was known to have been at. It is there from when that was
	// noticed until a recovery that spec.recovery approves is complete; or, after a lost quorum,
	// a majority of the members answers again; or, after it went back, spec.recovery approves
	// that it continues with what it has.
	// +optional
	Recovery *RecoveryStatus `json:"recovery,omitempty"`

	// recovered says with which copy etcd began again after it had lost its quorum, or gone
	// back, the last time. It is not set before.
	// +optional
	Recovered *RecoveredStatus `json:"recovered,omitempty"`

	// restored says from which backup the data began, where it was restored.
	// +optional
	Restored *RestoredStatus `json:"restored,omitempty"`

	// history are the installation and the upgrades of the registry, the newest
	// first. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	History []Transition `json:"history,omitempty"`

	// inventory are the objects that the operator made for the registry. One
	// that is no longer needed is deleted and leaves the list.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Inventory []ObjectReference `json:"inventory,omitempty"`
}

// ObjectReference names an object of the host cluster.
type ObjectReference struct {
	// group is the API group, empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// kind is the kind.
	// +required
	Kind string `json:"kind"`

	// namespace is the namespace, empty for an object without one.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name is the name.
	// +required
	Name string `json:"name"`
}

// String returns the reference as a person would write it.
func (r ObjectReference) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Endpoint is where clients reach a registry.
type Endpoint struct {
	// url is where clients find the registry. In Aggregated mode it is the path of the
	// registry's API on the host cluster's kube-apiserver, by the address that pods
	// there use: https://kubernetes.default.svc/apis/clusterregistry.k8s.io. In
	// Independent mode it is the address of the registry's own API server.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Address",xDescriptors={"urn:alm:descriptor:org.w3:link"}
	URL string `json:"url,omitempty"`

	// caBundle holds the CA certificates to trust for it, in PEM, base64 encoded
	// in JSON and YAML.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// ServerStatus is the state of the API servers.
type ServerStatus struct {
	// replicas is how many exist.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// readyReplicas is how many are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// updatedReplicas is how many are up to date with the spec.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
}

// EtcdStatus is the state of etcd.
type EtcdStatus struct {
	// ready is how many members are ready, of all: 3/3.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="etcd members that are ready"
	Ready string `json:"ready,omitempty"`

	// clusterID is etcd's identity, in hexadecimal. An etcd with another one has
	// other data, and is never used in its place.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// volumeSize is the size of the members' volumes: of the smallest one where they
	// differ.
	// +optional
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty"`

	// members are the members, in the order of their names.
	// +optional
	// +listType=map
	// +listMapKey=name
	Members []EtcdMember `json:"members,omitempty"`

	// compaction is the compaction of etcd's history that the operator made last, or is
	// about to make, because etcd was full. The API servers compact the history of any
	// other etcd.
	// +optional
	Compaction *EtcdCompaction `json:"compaction,omitempty"`

	// newest is the newest revision that an external etcd is known to have been at: below it,
	// etcd went back. Of an etcd that the operator runs, another object has it.
	// +optional
	Newest *EtcdRevision `json:"newest,omitempty"`
}

// EtcdRevision is a revision that etcd was at.
type EtcdRevision struct {
	// revision is the revision.
	// +required
	Revision int64 `json:"revision"`

	// upkeep is how many of the revisions change nothing for clients: those by which servers
	// compact the history.
	// +optional
	Upkeep int64 `json:"upkeep,omitempty"`

	// time is when that was recorded, which is done every five minutes at most.
	// +required
	Time metav1.Time `json:"time"`
}

// EtcdCompaction is a compaction of etcd's history.
type EtcdCompaction struct {
	// revision is the revision before which the history is dropped.
	// +required
	Revision int64 `json:"revision"`

	// revisionTime is when etcd was at that revision. The history is dropped five minutes
	// later at the earliest, as the API servers do, for lists and watches that began there.
	// +required
	RevisionTime metav1.Time `json:"revisionTime"`

	// completionTime is when the history was dropped; it is not set before.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// EtcdMember is an etcd member.
type EtcdMember struct {
	// name is the member's name, which is its pod's unless etcd is external.
	// +required
	Name string `json:"name"`

	// id is the member's identity, in hexadecimal.
	// +optional
	ID string `json:"id,omitempty"`

	// ready is true when the member answers with the cluster's data.
	// +optional
	Ready bool `json:"ready,omitempty"`

	// version is the version of etcd that the member runs.
	// +optional
	Version string `json:"version,omitempty"`

	// leader is true for the member that the others follow.
	// +optional
	Leader bool `json:"leader,omitempty"`

	// learner is true for a member that has no vote yet.
	// +optional
	Learner bool `json:"learner,omitempty"`

	// databaseSize is the size of the member's file. It, databaseSizeInUse and quota are
	// written again when one of them has changed by a tenth of the quota, and after a
	// defragmentation; the metrics are exact.
	// +optional
	DatabaseSize *resource.Quantity `json:"databaseSize,omitempty"`

	// databaseSizeInUse is what of the file is not free.
	// +optional
	DatabaseSizeInUse *resource.Quantity `json:"databaseSizeInUse,omitempty"`

	// quota is the size of the file at which the member refuses writes. An etcd that is
	// older than 3.6 does not say it.
	// +optional
	Quota *resource.Quantity `json:"quota,omitempty"`

	// defragmentedTime is when the operator last had the member give free space of its file
	// back.
	// +optional
	DefragmentedTime *metav1.Time `json:"defragmentedTime,omitempty"`

	// lostTime is since when the member's data is certainly gone. It is not set as long as
	// the member may come back with it.
	// +optional
	LostTime *metav1.Time `json:"lostTime,omitempty"`
}

// CertificateStatus is the state of a certificate.
type CertificateStatus struct {
	// name is the name of the Certificate, and of its Secret.
	// +required
	Name string `json:"name"`

	// notAfter is when the certificate's validity ends.
	// +optional
	NotAfter *metav1.Time `json:"notAfter,omitempty"`

	// renewalTime is when cert-manager renews it.
	// +optional
	RenewalTime *metav1.Time `json:"renewalTime,omitempty"`

	// generation is, of a CA, the number in spec.tls.rotation that made it.
	// +optional
	Generation int32 `json:"generation,omitempty"`

	// use is, of a CA, Signing when the registry's certificates are issued by it, and
	// Trusted when they are not, but it is trusted beside that one: the next one, or the
	// previous one.
	// +optional
	Use CAUse `json:"use,omitempty"`
}

// CAUse is what a CA of a registry is used for.
type CAUse string

const (
	// CASigning is a CA that signs.
	CASigning CAUse = "Signing"
	// CATrusted is a CA that is trusted beside the one that signs.
	CATrusted CAUse = "Trusted"
)

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterregistries,shortName=creg
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`,description="Aggregated or Independent"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`,description="The release that runs"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="Whether clients are served now"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the registry is available and matches its spec"
// +kubebuilder:printcolumn:name="Etcd",type=string,JSONPath=`.status.etcd.ready`,description="etcd members that are ready, of all"
// +kubebuilder:printcolumn:name="Operation",type=string,JSONPath=`.status.operation.progress`,description="The phase of the operation in progress, such as an upgrade"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.status.endpoint.url`,description="Where clients reach the registry"
// +kubebuilder:printcolumn:name="Status",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,description="What the condition Ready says"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",message="metadata.name becomes a part of Service names and certificates: use at most 40 lowercase letters, digits and dashes, a letter first and no dash last"
// +kubebuilder:validation:XValidation:rule="quantity(has(self.spec.etcd.storage) ? string(self.spec.etcd.storage.size) : '8Gi').compareTo(quantity(has(oldSelf.spec.etcd.storage) ? string(oldSelf.spec.etcd.storage.size) : '8Gi')) >= 0 || has(self.status) && has(self.status.etcd) && has(self.status.etcd.volumeSize) && quantity(has(self.spec.etcd.storage) ? string(self.spec.etcd.storage.size) : '8Gi').compareTo(quantity(string(self.status.etcd.volumeSize))) >= 0",fieldPath=".spec.etcd.storage",message="the size of etcd's volumes can grow but not shrink: the least is what the volumes have (status.etcd.volumeSize), or what it was before where that is not known"

// ClusterRegistry is a registry of clusters that the operator installs and
// keeps: its API server, its etcd, their certificates and, in Aggregated mode,
// its registration with the API of the host cluster.
type ClusterRegistry struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's standard metadata. The name is a DNS-1035 label
	// of at most 40 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the registry.
	// +required
	Spec ClusterRegistrySpec `json:"spec"`

	// status is what the operator observes.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status ClusterRegistryStatus `json:"status,omitempty,omitzero"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ClusterRegistryList is a list of registries.
type ClusterRegistryList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's standard metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the registries.
	Items []ClusterRegistry `json:"items"`
}

// ClusterRegistrySpec is the desired state of a registry.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'Independent' || !has(self.server) || !has(self.server.service)",fieldPath=".server.service",message="an Aggregated registry is reached through the API of the host cluster: remove server.service, or use mode Independent"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Independent' || !has(self.server) || !has(self.server.authentication)",fieldPath=".server.authentication",message="the host cluster authenticates the users of an Aggregated registry: remove server.authentication, or use mode Independent"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Independent' || !has(self.server) || !has(self.server.authorization) || !has(self.server.authorization.webhookSecretRef)",fieldPath=".server.authorization.webhookSecretRef",message="the host cluster authorizes the users of an Aggregated registry: remove server.authorization.webhookSecretRef, or use mode Independent"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Aggregated' || !has(self.server) || !has(self.server.authorization) || !has(self.server.authorization.hostDecision)",fieldPath=".server.authorization.hostDecision",message="no host cluster decides on requests to an Independent registry: remove server.authorization.hostDecision, or use mode Aggregated"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Independent' || !has(self.tls) || !has(self.tls.rotation) || !has(self.tls.rotation.client)",fieldPath=".tls.rotation.client",message="an Aggregated registry has no CA of clients, the host cluster authenticates them: remove tls.rotation.client"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Independent' || !has(self.tls) || !has(self.tls.rotation) || !has(self.tls.rotation.drop) || has(self.controllers) && has(self.controllers.feed) && !has(self.tls.rotation.drop.client)",fieldPath=".tls.rotation.drop",message="remove tls.rotation.drop: no client of an Aggregated registry has a copy of a CA, but for the servers' where controllers.feed is on, and the operator drops the previous one automatically"
// +kubebuilder:validation:XValidation:rule="!has(self.etcd.external) || !has(self.tls) || !has(self.tls.rotation) || !has(self.tls.rotation.etcd)",fieldPath=".tls.rotation.etcd",message="the operator does not manage the CA of an external etcd: remove tls.rotation.etcd, and replace the Secret in etcd.external.tlsSecretRef"
// +kubebuilder:validation:XValidation:rule="!has(self.backup) || !has(self.etcd.external)",fieldPath=".backup",message="the operator takes no backups of an external etcd: remove backup, and save it with the tools that it is run with, such as etcdctl snapshot save"
// +kubebuilder:validation:XValidation:rule="!has(self.jobs) || !has(self.etcd.external)",fieldPath=".jobs",message="the operator runs no Jobs for an external etcd: remove jobs"
// +kubebuilder:validation:XValidation:rule="!has(self.server) || !has(self.server.encryption) || !has(self.etcd.external)",fieldPath=".server.encryption",message="the operator does not record which keys the data of an external etcd needs: remove server.encryption, or encrypt the volumes of that etcd"
// +kubebuilder:validation:XValidation:rule="!has(self.deletionPolicy) || self.deletionPolicy != 'Snapshot' || !has(self.etcd.external)",fieldPath=".deletionPolicy",message="the operator takes no backups of an external etcd, and deletes none: set deletionPolicy to Retain or Delete"
// +kubebuilder:validation:XValidation:rule="!has(self.deletionPolicy) || self.deletionPolicy != 'Snapshot' || has(self.backup) || has(self.etcd.external)",fieldPath=".deletionPolicy",message="deletionPolicy Snapshot saves the registry before it is deleted: set backup, which names the store, or set deletionPolicy to Retain or Delete"
// +kubebuilder:validation:XValidation:rule="has(self.restoreFrom) == has(oldSelf.restoreFrom) && (!has(self.restoreFrom) || self.restoreFrom == oldSelf.restoreFrom)",fieldPath=".restoreFrom",message="a registry is restored once, when it is created: to restore a backup, create another ClusterRegistry with restoreFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.restoreFrom) || !has(self.etcd.external)",fieldPath=".restoreFrom",message="the operator does not restore an external etcd: remove restoreFrom, and restore it with the tools that it is run with, such as etcdutl snapshot restore"
// +kubebuilder:validation:XValidation:rule="!has(self.recovery) || !has(self.etcd.external) || self.recovery.from == 'Member'",fieldPath=".recovery",message="the operator does not recover an external etcd: recover it with the tools that it is run with; if it went back, set recovery.from to Member to approve that it continues with what it has"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Aggregated' || !has(self.controllers) || !has(self.controllers.feed)",fieldPath=".controllers.feed",message="the host cluster knows the users of an Aggregated registry alone: remove controllers.feed, or use mode Aggregated"
// +kubebuilder:validation:XValidation:rule="!has(self.controllers) || !has(self.controllers.clusterSelections) || !has(self.server) || !has(self.server.authorization) || !has(self.server.authorization.visibility) || self.server.authorization.visibility != 'ClusterSets' || self.controllers.clusterSelections.all(s, has(s.clusterSets))",fieldPath=".controllers.clusterSelections",message="server.authorization.visibility is ClusterSets, and an entry of controllers.clusterSelections names none: add clusterSets, the sets whose clusters the namespace may see"
type ClusterRegistrySpec struct {
	// version is the release of the registry that should run. Changing it
	// upgrades the registry.
	// +required
	// +operator-sdk:csv:customresourcedefinitions:displayName="Version",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Version Version `json:"version"`

	// mode is Aggregated for a registry that is a part of the host cluster's API, for its users;
	// or Independent for one with its own endpoint, users and roles. It can't be changed. A host
	// cluster can have one aggregated registry and any number of independent ones.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the mode of a registry can't be changed: create another registry and copy the clusters"
	// +operator-sdk:csv:customresourcedefinitions:displayName="Mode",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Aggregated","urn:alm:descriptor:com.tectonic.ui:select:Independent"}
	Mode Mode `json:"mode"`

	// paused stops the operator from changing this registry, which stays available; its status
	// is still reported. Deletion is not blocked, but the last backup of deletionPolicy Snapshot
	// is. Default: false.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Paused",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Paused bool `json:"paused,omitempty"`

	// deletionPolicy says what happens to the data when this object is deleted. Retain keeps
	// etcd's volumes, the CAs and the record of etcd's identity, and a new ClusterRegistry of
	// the same name and namespace takes them over. Delete keeps nothing. Snapshot takes a last
	// backup in the store of spec.backup, and deletes the registry when that is verified; until
	// then it keeps running, and this field can be changed. Deleting the namespace always
	// deletes the data, and does not wait for a backup. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	// +operator-sdk:csv:customresourcedefinitions:displayName="Deletion policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Retain","urn:alm:descriptor:com.tectonic.ui:select:Snapshot","urn:alm:descriptor:com.tectonic.ui:select:Delete"}
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// images says where the container images come from. Default: that of each field.
	// +optional
	// +kubebuilder:default={}
	Images Images `json:"images,omitempty,omitzero"`

	// server is the registry's API server. Default: that of each field.
	// +optional
	// +kubebuilder:default={}
	Server Server `json:"server,omitempty,omitzero"`

	// etcd is where the registry's data is: either members that the operator
	// runs (replicas, storage and so on) or an external etcd. It can't be
	// changed from one to the other.
	// +required
	Etcd Etcd `json:"etcd"`

	// jobs configures the pods of Jobs, such as those that take backups. Not with an external
	// etcd. Default: the placement and priority of etcd's pods.
	// +optional
	Jobs *Jobs `json:"jobs,omitempty"`

	// tls configures the certificates, which cert-manager issues. Default: that of each
	// field.
	// +optional
	// +kubebuilder:default={}
	TLS TLS `json:"tls,omitempty,omitzero"`

	// controllers turns on functions that act on the clusters in the registry, such as health,
	// which reports whether they are available. The operator runs them in a Deployment, and
	// removes it when none is set. Default: none.
	// +optional
	Controllers *Controllers `json:"controllers,omitempty"`

	// backup saves etcd to a store, on a schedule and for each ClusterRegistryBackup. Not with
	// an external etcd. Default: no backups are taken.
	// +optional
	Backup *Backup `json:"backup,omitempty"`

	// restoreFrom starts the new registry with the data of a backup. It can be set only when the
	// registry is created, and can't be changed or removed: the data is restored once, and etcd
	// grows from one member to spec.etcd.replicas. Nothing is created before the backup is found
	// and fits; status.restored has the details. Not with an external etcd. Default: the
	// registry begins empty, or takes over retained data.
	// +optional
	RestoreFrom *RestoreFrom `json:"restoreFrom,omitempty"`

	// recovery approves with which copy of the data etcd continues after the loss that
	// status.recovery describes: of its quorum, or of what it had acknowledged before it went
	// back. The servers and all members are stopped, a new etcd with one member begins with that
	// copy, and grows to spec.etcd.replicas. The volumes of all other members are kept. If etcd
	// went back and the copy is that of a ready member, nothing is stopped: etcd continues with
	// what it has. Of an external etcd, nothing else can be approved. Default: nothing is
	// recovered.
	// +optional
	Recovery *Recovery `json:"recovery,omitempty"`
}

// Mode is how a registry is reached, and who knows its users.
//
// +kubebuilder:validation:Enum=Aggregated;Independent
type Mode string

const (
	// ModeAggregated is behind the aggregator of the host cluster.
	ModeAggregated Mode = "Aggregated"
	// ModeIndependent is on its own.
	ModeIndependent Mode = "Independent"
)

// DeletionPolicy says what becomes of a deleted registry's data.
//
// +kubebuilder:validation:Enum=Retain;Snapshot;Delete
type DeletionPolicy string

const (
	// DeletionPolicyRetain keeps it, for a registry of the same name to take over.
	DeletionPolicyRetain DeletionPolicy = "Retain"
	// DeletionPolicySnapshot deletes it once a backup of it is verified.
	DeletionPolicySnapshot DeletionPolicy = "Snapshot"
	// DeletionPolicyDelete deletes it.
	DeletionPolicyDelete DeletionPolicy = "Delete"
)

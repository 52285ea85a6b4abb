package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// DefaultStorageSize is the size of a member's volume when the spec names none.
const DefaultStorageSize = "8Gi"

// Etcd is where a registry's data is.
//
// +kubebuilder:validation:XValidation:rule="has(self.external) || has(self.replicas)",message="say how many members etcd has (replicas: 1, 3 or 5), or name an external etcd"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || !(has(self.replicas) || has(self.storage) || has(self.resources) || has(self.nodeSelector) || has(self.tolerations) || has(self.topologySpreadConstraints) || has(self.priorityClassName))",message="the operator does not run an external etcd: remove external, or all else of etcd"
// +kubebuilder:validation:XValidation:rule="has(self.external) == has(oldSelf.external)",message="a registry can't be moved between an etcd of its own and an external one: create another registry and copy the clusters"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(oldSelf.replicas) || self.replicas == oldSelf.replicas",fieldPath=".replicas",message="changing the number of members of a running registry is not supported yet: create another registry and copy the clusters"
// +kubebuilder:validation:XValidation:rule="(has(self.storage) && has(self.storage.storageClassName) ? self.storage.storageClassName : '-') == (has(oldSelf.storage) && has(oldSelf.storage.storageClassName) ? oldSelf.storage.storageClassName : '-')",fieldPath=".storage",message="the storage class of etcd's volumes can't be changed: create another registry and copy the clusters"
type Etcd struct {
	// replicas is how many members etcd has: 1, 3 or 5. With 3, one may fail;
	// with 5, two; with 1, none, and an upgrade interrupts the service. It can't be
	// changed yet.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self in [1, 3, 5]",message="etcd has 1, 3 or 5 members: an even number survives no more failures than one less"
	// +operator-sdk:csv:customresourcedefinitions:displayName="etcd's members",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:1","urn:alm:descriptor:com.tectonic.ui:select:3","urn:alm:descriptor:com.tectonic.ui:select:5"}
	Replicas int32 `json:"replicas,omitempty"`

	// storage is the volume of each member. Default: 8Gi of the cluster's default
	// StorageClass.
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// resources are what each member requests, and its limits. Default: what is
	// enough for 100,000 clusters from v0.4.0 on.
	// +optional
	Resources Resources `json:"resources,omitempty,omitzero"`

	Placement `json:",inline"`

	// external is an etcd that is run elsewhere, which the operator does not manage.
	// +optional
	External *ExternalEtcd `json:"external,omitempty"`
}

// Storage is the volume of an etcd member.
type Storage struct {
	// size is the volume's size, at least 256Mi; etcd may fill half of it. It can grow
	// where the StorageClass allows expansion, and the quota follows, for which members
	// are replaced one at a time: a single member interrupts the service. Default: 8Gi.
	// +optional
	// +kubebuilder:default="8Gi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('256Mi')) >= 0",message="the size of a volume is a quantity of at least 256Mi, such as 8Gi: etcd may fill half of it, and its log alone takes 128 MB"
	// +operator-sdk:csv:customresourcedefinitions:displayName="Size of each member's volume",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Size resource.Quantity `json:"size,omitempty,omitzero"`

	// storageClassName is the volume's StorageClass; etcd wants a fast disk.
	// Default: the cluster's default class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`
}

// ExternalEtcd is an etcd that is run elsewhere, which the operator does not manage.
type ExternalEtcd struct {
	// endpoints are the https URLs of all members, with ports, so that the
	// servers continue with the others when one fails. At most 9.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	Endpoints []EtcdEndpoint `json:"endpoints"`

	// tlsSecretRef names a Secret with the etcd client certificate and key (tls.crt,
	// tls.key) and the CA certificates that sign the certificates of etcd (ca.crt).
	// +required
	TLSSecretRef LocalObjectReference `json:"tlsSecretRef"`
}

// EtcdEndpoint is the URL of an etcd member.
//
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https://[^/?#@]+:[0-9]{1,5}/?$')",message="write an https URL with a port and without a path, such as https://etcd-0.example:2379"
type EtcdEndpoint string

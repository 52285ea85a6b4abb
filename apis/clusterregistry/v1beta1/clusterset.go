package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// ClusterSetLabel is the label under which every version shows the ClusterSet of a
// cluster: the value of spec.clusterSet. The server alone keeps it, as
// kubernetes.io/metadata.name is kept on namespaces.
const ClusterSetLabel = clusterregistry.ClusterSetLabel

// +genclient
// +genclient:nonNamespaced
// +genclient:noStatus
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSet is a group of clusters, such as those of one team or of one stage. A
// cluster is in one set or in none: its spec.clusterSet names it.
type ClusterSet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's standard metadata. The name is a DNS label of at
	// most 63 characters, so that it can be the value of a label.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is what people say of the set.
	// +optional
	Spec ClusterSetSpec `json:"spec,omitempty,omitzero" protobuf:"bytes,2,opt,name=spec"`

	// status is what the server counts of the clusters in the set, a few seconds after
	// they change. Clients can't write it.
	// +optional
	Status ClusterSetStatus `json:"status,omitempty,omitzero" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSetList is a list of sets.
type ClusterSetList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's standard metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the sets.
	Items []ClusterSet `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ClusterSetSpec is what people say of a set.
type ClusterSetSpec struct {
	// displayName is what people call the set. At most 256 bytes. Empty means none.
	// +optional
	DisplayName string `json:"displayName,omitempty" protobuf:"bytes,1,opt,name=displayName"`

	// description says what the set is for, and whom to ask. At most 4096 bytes.
	// Empty means nothing.
	// +optional
	Description string `json:"description,omitempty" protobuf:"bytes,2,opt,name=description"`
}

// ClusterSetStatus is what the server counts of the clusters in a set.
type ClusterSetStatus struct {
	// clusters is the number of clusters in the set.
	// +optional
	Clusters int32 `json:"clusters" protobuf:"varint,1,opt,name=clusters"`

	// available is the number of those whose condition Available is True.
	// +optional
	Available int32 `json:"available" protobuf:"varint,2,opt,name=available"`

	// versions are the versions of Kubernetes that the clusters run, as they are
	// reported, with the number of clusters of each: most clusters first, at most 32.
	// +optional
	// +listType=map
	// +listMapKey=kubernetes
	Versions []ClusterSetVersion `json:"versions,omitempty" protobuf:"bytes,3,rep,name=versions"`
}

// ClusterSetVersion counts the clusters of a set that run one version of Kubernetes.
type ClusterSetVersion struct {
	// kubernetes is the version, such as v1.37.1.
	Kubernetes string `json:"kubernetes" protobuf:"bytes,1,opt,name=kubernetes"`

	// clusters is the number of clusters that run it.
	Clusters int32 `json:"clusters" protobuf:"varint,2,opt,name=clusters"`
}

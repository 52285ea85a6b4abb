package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Cluster is an entry of the registry: who a Kubernetes cluster is, where it is
// and how to sign in to it. It holds pointers to credentials, never credentials.
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's standard metadata. The name is a DNS label of at
	// most 63 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is what is known of the cluster. No controller need act on it.
	// +optional
	Spec ClusterSpec `json:"spec,omitempty,omitzero" protobuf:"bytes,2,opt,name=spec"`

	// status is what controllers report of the cluster. It is absent when none
	// does, and it is written through the status subresource only.
	// +optional
	Status *ClusterStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterList is a list of clusters.
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's standard metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the clusters.
	Items []Cluster `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ClusterSpec is what is known of a cluster.
type ClusterSpec struct {
	// displayName is what people call the cluster. At most 256 bytes. Empty means none.
	// +optional
	DisplayName string `json:"displayName,omitempty" protobuf:"bytes,1,opt,name=displayName"`

	// id says which cluster this is, wherever it is moved and whatever its
	// endpoints become: a DNS subdomain of at most 127 characters, such as the UID
	// of its namespace kube-system. No two clusters of a registry have the same.
	// It may be set once, and then never changes. Empty means that it is not known yet.
	// +optional
	ID string `json:"id,omitempty" protobuf:"bytes,2,opt,name=id"`

	// endpoints are the ways to reach the cluster's API server. At most 16, with
	// 128 KiB of distinct CA bundles in all. None means that they are not known yet.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	Endpoints []Endpoint `json:"endpoints,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,3,rep,name=endpoints"`

	// access are the ways to get credentials for the cluster. At most 16, with
	// 128 KiB of text in all. It is public: what looks like a private key, token or
	// password is refused. None means that people and programs bring their own.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	Access []Access `json:"access,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,4,rep,name=access"`

	// taints keep workloads that don't tolerate them away from the cluster. At
	// most 32, and no key twice with one effect. A strategic merge patch, such as
	// that of "kubectl apply", replaces all of them, because it knows entries by one
	// field only; server-side apply merges them. None means any workload.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []Taint `json:"taints,omitempty" protobuf:"bytes,5,rep,name=taints"`

	// heartbeat says how often a sign of life is expected of the cluster, as a
	// ClusterHeartbeat. Absent means that none is.
	// +optional
	Heartbeat *Heartbeat `json:"heartbeat,omitempty" protobuf:"bytes,6,opt,name=heartbeat"`

	// manager is what manages the cluster's entry. Who changes or removes it once it is
	// set needs "update" on "clusters/identity". Absent means none.
	// +optional
	Manager *Manager `json:"manager,omitempty" protobuf:"bytes,7,opt,name=manager"`

	// sourceRef is the object that the cluster's entry was made from. Who changes it
	// once it is set, as when the object was made again, needs "update" on
	// "clusters/identity". It can't be removed. Absent means none.
	// +optional
	SourceRef *SourceReference `json:"sourceRef,omitempty" protobuf:"bytes,8,opt,name=sourceRef"`

	// clusterSet is the name of the ClusterSet that the cluster is in, of at most 63
	// characters. It must exist. Empty means none. Who changes it needs "create" on "clustersets/join" of the set
	// that the cluster leaves and of the one that it is put in. The server shows it in
	// the label clusterregistry.k8s.io/clusterset, in every version.
	// +optional
	ClusterSet string `json:"clusterSet,omitempty" protobuf:"bytes,9,opt,name=clusterSet"`
}

// Taint keeps workloads that don't tolerate it away from a cluster.
type Taint struct {
	// key is the taint's name, in the form of a label's key, such as
	// example.com/maintenance.
	Key string `json:"key" protobuf:"bytes,1,opt,name=key"`

	// value goes with the key, in the form of a label's value. Empty means none.
	// +optional
	Value string `json:"value,omitempty" protobuf:"bytes,2,opt,name=value"`

	// effect is what becomes of workloads that don't tolerate the taint.
	Effect TaintEffect `json:"effect" protobuf:"bytes,3,opt,name=effect,casttype=TaintEffect"`
}

// TaintEffect is what becomes of workloads that don't tolerate a taint.
// +enum
type TaintEffect string

const (
	// TaintNoSchedule lets no new workload in.
	TaintNoSchedule TaintEffect = "NoSchedule"
	// TaintPreferNoSchedule lets a new workload in when there is no other place.
	TaintPreferNoSchedule TaintEffect = "PreferNoSchedule"
	// TaintNoExecute lets no new workload in and sends away those that are there.
	TaintNoExecute TaintEffect = "NoExecute"
)

// Heartbeat says how often a sign of life is expected.
type Heartbeat struct {
	// periodSeconds is the time between two signs of life, from 1 to 86400.
	PeriodSeconds int32 `json:"periodSeconds" protobuf:"varint,1,opt,name=periodSeconds"`

	// toleratedMisses is how many signs of life in a row may be missing before the
	// cluster counts as unreachable, from 0 to 100. Default: 0.
	// +optional
	ToleratedMisses int32 `json:"toleratedMisses,omitempty" protobuf:"varint,2,opt,name=toleratedMisses"`
}

// Manager is what manages a cluster's entry.
type Manager struct {
	// name is the manager's name, such as that of a fleet or of a controller. At
	// most 253 bytes.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// SourceReference is the object that a cluster's entry was made from.
type SourceReference struct {
	// apiVersion is the group and version of the object, such as
	// cluster.x-k8s.io/v1beta2. At most 253 bytes. It tells kinds of one name apart by
	// the group; an object is the same in any version. Empty means that the kind says
	// enough.
	// +optional
	APIVersion string `json:"apiVersion,omitempty" protobuf:"bytes,1,opt,name=apiVersion"`

	// kind is the kind of the object. At most 253 bytes.
	Kind string `json:"kind" protobuf:"bytes,2,opt,name=kind"`

	// namespace is where the object is. At most 253 bytes. Empty means that its kind
	// has none.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,3,opt,name=namespace"`

	// name is the name of the object. At most 253 bytes.
	Name string `json:"name" protobuf:"bytes,4,opt,name=name"`

	// uid tells the object from others that had its name. At most 253 bytes. Empty
	// means that it is not known.
	// +optional
	UID string `json:"uid,omitempty" protobuf:"bytes,5,opt,name=uid"`
}

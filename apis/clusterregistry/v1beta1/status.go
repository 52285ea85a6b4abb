package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterStatus is what controllers report of a cluster. Several may, each what
// it knows, by server-side apply.
type ClusterStatus struct {
	// observedGeneration is the newest generation of the spec that leaves nothing to observe.
	// Each condition has that of the spec that it is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,1,opt,name=observedGeneration"`

	// conditions are observations of the cluster: Available, Reachable,
	// ControlPlaneHealthy, IdentityVerified, Joined and others. At most 64.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,2,rep,name=conditions"`

	// version is what the cluster runs.
	// +optional
	Version ClusterVersion `json:"version,omitempty,omitzero" protobuf:"bytes,3,opt,name=version"`

	// properties are facts of the cluster by name. At most 128.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	Properties []Property `json:"properties,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,4,rep,name=properties"`

	// capacity is what the cluster's nodes have, by resource.
	// +optional
	Capacity map[string]resource.Quantity `json:"capacity,omitempty" protobuf:"bytes,5,rep,name=capacity"`

	// allocatable is what of it is for workloads.
	// +optional
	Allocatable map[string]resource.Quantity `json:"allocatable,omitempty" protobuf:"bytes,6,rep,name=allocatable"`

	// nodes counts the cluster's nodes.
	// +optional
	Nodes *NodeCount `json:"nodes,omitempty" protobuf:"bytes,7,opt,name=nodes"`

	// reporters are the controllers that report of the cluster, each in an entry of
	// its own. At most 32.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	Reporters []Reporter `json:"reporters,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,8,rep,name=reporters"`
}

// ClusterVersion is what a cluster runs.
type ClusterVersion struct {
	// kubernetes is the version of the cluster's API server, such as v1.37.1.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty" protobuf:"bytes,1,opt,name=kubernetes"`
}

// Property is a fact of a cluster.
type Property struct {
	// name is the property's name. At most 253 bytes.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// value is the property's value. At most 4096 bytes.
	// +optional
	Value string `json:"value,omitempty" protobuf:"bytes,2,opt,name=value"`

	// lastObservedTime is when the value was last seen to be so.
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty" protobuf:"bytes,3,opt,name=lastObservedTime"`
}

// NodeCount counts nodes.
type NodeCount struct {
	// total is the number of nodes.
	// +optional
	Total int32 `json:"total,omitempty" protobuf:"varint,1,opt,name=total"`

	// ready is the number of nodes that are ready.
	// +optional
	Ready int32 `json:"ready,omitempty" protobuf:"varint,2,opt,name=ready"`
}

// Reporter is a controller that reports of a cluster.
type Reporter struct {
	// name tells the controller from others. At most 253 bytes. One that writes
	// ClusterHeartbeats needs a name that is a DNS subdomain, and is with the cluster's name
	// and a dot at most 253 characters long.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// lastSeen is when the controller last had a sign of life of the cluster, before it wrote
	// this entry. One that has signs of life all the time writes a ClusterHeartbeat for each:
	// that rewrites no Cluster.
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty" protobuf:"bytes,2,opt,name=lastSeen"`

	// conditions are this controller's own observations of the cluster.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,3,rep,name=conditions"`
}

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:noStatus
// +genclient:onlyVerbs=get,list,create,update,patch,apply,delete
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterHeartbeat says when a reporter last had a sign of life of a cluster. A reporter
// writes it again for each one, with nothing but its name: the server sets all else. It is
// read by get and list, and can't be watched. It goes with its cluster.
type ClusterHeartbeat struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's standard metadata. The name is CLUSTER.REPORTER, such as
	// east.agent: the name of the cluster, a dot, and the name of the reporter in
	// status.reporters, as a DNS subdomain. At most 253 characters. A heartbeat has no
	// finalizers and no ownerReferences, and at most 4096 bytes of labels, annotations and
	// managedFields in all; a cluster has at most 32 heartbeats.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// clusterName is the name of the cluster. The server sets it.
	// +optional
	ClusterName string `json:"clusterName,omitempty" protobuf:"bytes,2,opt,name=clusterName"`

	// clusterUID tells the cluster from others that had its name: the UID of its entry
	// when the heartbeat was last written. The server sets it.
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty" protobuf:"bytes,3,opt,name=clusterUID,casttype=k8s.io/apimachinery/pkg/types.UID"`

	// reporter is the name of the reporter. The server sets it.
	// +optional
	Reporter string `json:"reporter,omitempty" protobuf:"bytes,4,opt,name=reporter"`

	// renewTime is when the heartbeat was last written, to the second, by the clock of the
	// server. The server sets it.
	// +optional
	RenewTime metav1.Time `json:"renewTime,omitempty,omitzero" protobuf:"bytes,5,opt,name=renewTime"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterHeartbeatList is a list of heartbeats.
type ClusterHeartbeatList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's standard metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the heartbeats.
	Items []ClusterHeartbeat `json:"items" protobuf:"bytes,2,rep,name=items"`
}

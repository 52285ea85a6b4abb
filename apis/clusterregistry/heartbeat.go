package clusterregistry

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterHeartbeat says when a reporter last had a sign of life of a cluster.
type ClusterHeartbeat struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// ClusterName, ClusterUID and Reporter say of which cluster and whose it is, and
	// RenewTime when it was last written. The server sets all of them.
	ClusterName string
	ClusterUID  types.UID
	Reporter    string
	RenewTime   metav1.Time
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterHeartbeatList is a list of heartbeats.
type ClusterHeartbeatList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []ClusterHeartbeat
}

// HeartbeatOf returns whose heartbeat has a name: CLUSTER.REPORTER. No cluster has a dot in
// its name. Both are empty when the name is not of this form.
func HeartbeatOf(name string) (cluster, reporter string) {
	cluster, reporter, found := strings.Cut(name, ".")
	if !found || cluster == "" || reporter == "" {
		return "", ""
	}
	return cluster, reporter
}

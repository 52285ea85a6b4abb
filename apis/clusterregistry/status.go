package clusterregistry

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterStatus is what controllers report of a cluster. Several may, each what
// it knows, by server-side apply.
type ClusterStatus struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
	Version            ClusterVersion
	Properties         []Property
	Capacity           map[string]resource.Quantity
	Allocatable        map[string]resource.Quantity
	Nodes              *NodeCount
	Reporters          []Reporter
}

// ClusterVersion is what a cluster runs.
type ClusterVersion struct {
	Kubernetes string
}

// Property is a fact of a cluster.
type Property struct {
	Name             string
	Value            string
	LastObservedTime *metav1.Time
}

// NodeCount counts nodes.
type NodeCount struct {
	Total int32
	Ready int32
}

// Reporter is a controller that reports of a cluster.
type Reporter struct {
	Name       string
	LastSeen   *metav1.Time
	Conditions []metav1.Condition
}

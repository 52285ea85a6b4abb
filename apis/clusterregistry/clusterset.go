package clusterregistry

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterSetLabel is the label under which every version shows the ClusterSet of a
// cluster: the value of spec.clusterSet, which clients can select by. The server alone
// keeps it.
const ClusterSetLabel = GroupName + "/clusterset"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSet is a group of clusters, such as those of one team. A cluster is in one set
// or in none.
type ClusterSet struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Spec is what people say of the set.
	Spec ClusterSetSpec
	// Status is what the server counts of the clusters in it.
	Status ClusterSetStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSetList is a list of sets.
type ClusterSetList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []ClusterSet
}

// ClusterSetSpec is what people say of a set. Its clusters name it, not the other way
// round.
type ClusterSetSpec struct {
	DisplayName string
	Description string
}

// ClusterSetStatus is what the server counts of the clusters in a set.
type ClusterSetStatus struct {
	Clusters  int32
	Available int32
	Versions  []ClusterSetVersion
}

// ClusterSetVersion counts the clusters of a set that run one version of Kubernetes.
type ClusterSetVersion struct {
	Kubernetes string
	Clusters   int32
}

// Label makes the label ClusterSetLabel of a cluster say in which set it is. It
// shares nothing that it changes.
func (c *Cluster) Label() {
	said, labelled := c.Labels[ClusterSetLabel]
	if said == c.Spec.ClusterSet && labelled == (said != "") {
		return
	}
	c.Labels = maps.Clone(c.Labels)
	delete(c.Labels, ClusterSetLabel)
	if c.Spec.ClusterSet != "" {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[ClusterSetLabel] = c.Spec.ClusterSet
	}
	if len(c.Labels) == 0 {
		c.Labels = nil
	}
}

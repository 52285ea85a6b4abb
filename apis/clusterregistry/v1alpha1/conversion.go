package v1alpha1

import (
	"k8s.io/apimachinery/pkg/conversion"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/form"
)

// Convert_clusterregistry_Cluster_To_v1alpha1_Cluster leaves the remainder out:
// it is between the server and its storage.
func Convert_clusterregistry_Cluster_To_v1alpha1_Cluster(in *clusterregistry.Cluster, out *Cluster, s conversion.Scope) error {
	return autoConvert_clusterregistry_Cluster_To_v1alpha1_Cluster(in, out, s)
}

// Convert_v1alpha1_Cluster_To_clusterregistry_Cluster fills both forms. When out
// holds the cluster already, what this version doesn't show of it stays: admission
// converts a cluster to the version of a webhook, and what that returns back into
// the same object.
func Convert_v1alpha1_Cluster_To_clusterregistry_Cluster(in *Cluster, out *clusterregistry.Cluster, s conversion.Scope) error {
	before := *out
	if err := autoConvert_v1alpha1_Cluster_To_clusterregistry_Cluster(in, out, s); err != nil {
		return err
	}
	form.Restore(form.V1alpha1, out, &before)
	return nil
}

// Convert_clusterregistry_ClusterSpec_To_v1alpha1_ClusterSpec leaves out what
// this version has no field for.
func Convert_clusterregistry_ClusterSpec_To_v1alpha1_ClusterSpec(in *clusterregistry.ClusterSpec, out *ClusterSpec, s conversion.Scope) error {
	return autoConvert_clusterregistry_ClusterSpec_To_v1alpha1_ClusterSpec(in, out, s)
}

// Convert_clusterregistry_ClusterStatus_To_v1alpha1_ClusterStatus leaves out what
// this version has no field for.
func Convert_clusterregistry_ClusterStatus_To_v1alpha1_ClusterStatus(in *clusterregistry.ClusterStatus, out *ClusterStatus, s conversion.Scope) error {
	return autoConvert_clusterregistry_ClusterStatus_To_v1alpha1_ClusterStatus(in, out, s)
}

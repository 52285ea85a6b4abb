package v1alpha1

import (
	"k8s.io/apimachinery/pkg/conversion"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// Convert_clusterregistry_Cluster_To_v1alpha1_Cluster leaves the remainder out:
// it is between the server and its storage.
func Convert_clusterregistry_Cluster_To_v1alpha1_Cluster(in *clusterregistry.Cluster, out *Cluster, s conversion.Scope) error { //nolint:revive // the generator's name
	return autoConvert_clusterregistry_Cluster_To_v1alpha1_Cluster(in, out, s)
}

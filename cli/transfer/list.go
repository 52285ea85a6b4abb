package transfer

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	clusterclient "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/unregistered"
)

// find returns a cluster of the registry, nil when it is not there.
func (i *importer) find(ctx context.Context, clusters clusterclient.ClusterInterface, name string) (*v1beta1.Cluster, error) {
	if i.listed != nil {
		return i.listed[name], nil
	}
	found, err := clusters.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !unregistered.Is(err) {
		return nil, nil
	}
	return found, err
}

// many is from how many clusters on all that the registry has are listed at once. Each is asked for
// by its name otherwise, and where the list is not to be had, as where the caller may not list them, it
// took so long that it has expired, or what it has can't be decoded.
const many = 50

// list lists the clusters of the registry, where so many are to be entered that it is worth it.
func (i *importer) list(ctx context.Context, clusters clusterclient.ClusterInterface, entered int) error {
	if entered < many {
		return nil
	}
	listed := map[string]*v1beta1.Cluster{}
	_, err := command.EachCluster(ctx, clusters, "", func(cluster *v1beta1.Cluster) { listed[cluster.Name] = cluster })
	switch {
	case err == nil:
		i.listed = listed
	case fatal(ctx, err):
		return err
	}
	return nil
}

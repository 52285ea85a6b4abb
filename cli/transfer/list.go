package transfer

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
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
// by its name otherwise, and where the caller may not list them, or the list took so long that it has expired.
const many = 50

// list lists the clusters of the registry, where so many are to be entered that it is worth it.
func (i *importer) list(ctx context.Context, clusters clusterclient.ClusterInterface, entered int) error {
	if entered < many {
		return nil
	}
	listed := map[string]*v1beta1.Cluster{}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return clusters.List(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		cluster := object.(*v1beta1.Cluster)
		listed[cluster.Name] = cluster
		return nil
	})
	if apierrors.IsForbidden(err) || apierrors.IsResourceExpired(err) {
		return nil
	}
	if err == nil {
		i.listed = listed
	}
	return err
}

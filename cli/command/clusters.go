package command

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
)

// EachCluster calls a function for each cluster that a selector selects, page by page, and
// returns the resource version of what it has listed.
func EachCluster(ctx context.Context, clusters typed.ClusterInterface, selector string, do func(*v1beta1.Cluster)) (version string, err error) {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := clusters.List(ctx, options)
		if err == nil {
			version = page.ResourceVersion
		}
		return page, err
	})
	pages.PageBufferSize = 1
	err = pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(object runtime.Object) error {
		do(object.(*v1beta1.Cluster))
		return nil
	})
	return version, err
}

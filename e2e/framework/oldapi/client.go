package oldapi

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

// Client asks as the client that was generated for v0.0.4: for v1alpha1, in one form, with
// the parameters that there were then (no bookmarks, field managers or resourceVersionMatch).
type Client struct{ rest *rest.RESTClient }

// NewClient returns a client that speaks JSON or Protobuf.
func NewClient(config *rest.Config, media string) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("know the types of v1alpha1: %w", err)
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.SchemeGroupVersion
	config.UserAgent = "federation-controller-manager/v0.0.4"
	config.ContentType, config.AcceptContentTypes = media, media
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of 2018: %w", err)
	}
	return &Client{client}, nil
}

// Get returns a cluster.
func (c *Client) Get(ctx context.Context, name string) (*v1alpha1.Cluster, error) {
	out := &v1alpha1.Cluster{}
	return out, c.rest.Get().Resource("clusters").Name(name).Do(ctx).Into(out)
}

// List returns all clusters as a reflector of 2018 asked for them: out of the server's
// cache, at once.
func (c *Client) List(ctx context.Context) (*v1alpha1.ClusterList, error) {
	out := &v1alpha1.ClusterList{}
	return out, c.rest.Get().Resource("clusters").Param("resourceVersion", "0").Do(ctx).Into(out)
}

// Create enters a cluster.
func (c *Client) Create(ctx context.Context, cluster *v1alpha1.Cluster) (*v1alpha1.Cluster, error) {
	out := &v1alpha1.Cluster{}
	return out, c.rest.Post().Resource("clusters").Body(cluster).Do(ctx).Into(out)
}

// Update replaces a cluster.
func (c *Client) Update(ctx context.Context, cluster *v1alpha1.Cluster) (*v1alpha1.Cluster, error) {
	out := &v1alpha1.Cluster{}
	return out, c.rest.Put().Resource("clusters").Name(cluster.Name).Body(cluster).Do(ctx).Into(out)
}

// Delete deletes a cluster. The options are of the group's version, as they were in 2018.
func (c *Client) Delete(ctx context.Context, name string) error {
	orphan := false
	options := &metav1.DeleteOptions{OrphanDependents: &orphan} //nolint:staticcheck // it is what there was in 2018
	return c.rest.Delete().Resource("clusters").Name(name).Body(options).Do(ctx).Error()
}

// Watch follows the clusters from a resourceVersion on, for at most five minutes.
func (c *Client) Watch(ctx context.Context, resourceVersion string) (watch.Interface, error) {
	const timeout = 5 * time.Minute
	return c.rest.Get().Resource("clusters").Timeout(timeout).Param("watch", "true").Param("resourceVersion", resourceVersion).
		Param("timeoutSeconds", fmt.Sprint(int(timeout.Seconds()))).Watch(ctx)
}

// Package registryclient uses a registry as its clients do, through the host or at its
// own endpoint: to see that a new release serves, and to have objects rewritten.
package registryclient

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/unregistered"
)

const (
	// timeout bounds one request.
	timeout = 10 * time.Second
	// sample is how many clusters are read to see that reads work: no more than
	// always fit into maxAnswer, each with the most that etcd stores.
	sample = 16
)

// Client is a client of one registry.
type Client struct {
	objects   dynamic.Interface
	metadata  metadata.Getter
	discovery discovery.DiscoveryInterface
}

// New returns a client of the registry that a configuration leads to.
func New(config *rest.Config) (*Client, error) {
	config = rest.CopyConfig(config)
	config.Timeout = timeout
	config.Wrap(unregistered.Wrap)
	config.Wrap(Bound)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return named{next} })
	// Each would make connections of its own otherwise.
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfigAndClient(config, shared)
	if err != nil {
		return nil, err
	}
	described, err := metadata.NewForConfigAndClient(config, shared)
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfigAndClient(config, shared)
	return &Client{objects, described.Resource(v1beta1.SchemeGroupVersion.WithResource("clusters")), served}, err
}

func (c *Client) clusters(version string) dynamic.ResourceInterface {
	return c.objects.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: "clusters"})
}

// Verify returns nil when the registry serves each version of its API: it is in
// the discovery document, clusters are listed, and the creation of one gets as
// far as a dry run does. It writes nothing: a cluster that were seen, consumers
// would join.
func (c *Client) Verify(ctx context.Context, versions []string) error {
	for _, version := range versions {
		if err := c.discovered(version); err != nil {
			return err
		}
		if _, err := c.clusters(version).List(ctx, metav1.ListOptions{Limit: sample}); err != nil {
			return fmt.Errorf("clusters can't be listed as %s: %w", version, err)
		}
		cluster := &unstructured.Unstructured{}
		cluster.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: "Cluster"})
		cluster.SetGenerateName("verification-")
		_, err := c.clusters(version).Create(ctx, cluster, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && !Refused(err) {
			return fmt.Errorf("no cluster can be created as %s, not even in a dry run: %w", version, err)
		}
	}
	return nil
}

// Read returns nil when clusters can be read in a version of the API.
func (c *Client) Read(ctx context.Context, version string) error {
	if _, err := c.clusters(version).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return fmt.Errorf("clusters can't be listed as %s: %w", version, err)
	}
	return nil
}

// discovered returns nil when the registry lists clusters in discovery of a version.
func (c *Client) discovered(version string) error {
	name := schema.GroupVersion{Group: group, Version: version}.String()
	resources, err := c.discovery.ServerResourcesForGroupVersion(name)
	if err != nil {
		return fmt.Errorf("%s is not discovered: %w", name, err)
	}
	if !slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == "clusters" }) {
		return fmt.Errorf("%s is discovered without clusters", name)
	}
	return nil
}

// Refused reports whether an error is what was decided on a request that was
// understood, such as by a policy of the host that wants labels on clusters. The same
// request is refused again.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// Rewrite has a cluster stored again, unchanged, by an update without a change. One
// that is gone is fine. One that someone else writes meanwhile is read again, since
// their write may not do what this one does.
func (c *Client) Rewrite(ctx context.Context, version, name string) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		cluster, err := c.clusters(version).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			_, err = c.clusters(version).Update(ctx, cluster, metav1.UpdateOptions{})
		}
		return err
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("rewrite cluster %s: %w", name, err)
}

package oldapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// ControlPlane follows the clusters of a registry as a federation control plane of 2018 did:
// it lists them, watches from there on, and keeps what it was told.
type ControlPlane struct {
	client *Client

	mutex    sync.Mutex
	clusters map[string]*v1alpha1.Cluster
	err      error
}

// Follow starts a control plane, which ends with the test.
func Follow(t *testing.T, client *Client) *ControlPlane {
	t.Helper()
	c := &ControlPlane{client: client, clusters: map[string]*v1alpha1.Cluster{}}
	list, err := client.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		c.clusters[list.Items[i].Name] = &list.Items[i]
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.watch(ctx, list.ResourceVersion) })
	t.Cleanup(func() { stop(); running.Wait() })
	return c
}

// watch continues from the last version that it was told when the watch ends.
func (c *ControlPlane) watch(ctx context.Context, version string) {
	for ctx.Err() == nil {
		events, err := c.client.Watch(ctx, version)
		if err == nil {
			version, err = c.take(ctx, events, version)
		}
		if err != nil && ctx.Err() == nil {
			c.mutex.Lock()
			c.err = err
			c.mutex.Unlock()
			return
		}
	}
}

// take takes events until the watch or the context ends.
func (c *ControlPlane) take(ctx context.Context, events watch.Interface, version string) (string, error) {
	defer events.Stop()
	for {
		var event watch.Event
		var more bool
		select {
		case <-ctx.Done():
			return version, nil
		case event, more = <-events.ResultChan():
		}
		if !more {
			return version, nil
		}
		cluster, is := event.Object.(*v1alpha1.Cluster)
		if !is || event.Type != watch.Added && event.Type != watch.Modified && event.Type != watch.Deleted {
			return version, fmt.Errorf("the watch has %s %T, which a client of 2018 doesn't expect: %v", event.Type, event.Object, event.Object)
		}
		c.mutex.Lock()
		if c.clusters[cluster.Name] = cluster; event.Type == watch.Deleted {
			delete(c.clusters, cluster.Name)
		}
		c.mutex.Unlock()
		version = cluster.ResourceVersion
	}
}

// Await waits until what the control plane knows of a cluster, nil if there is none, is right.
func (c *ControlPlane) Await(t *testing.T, name, what string, right func(*v1alpha1.Cluster) error) {
	t.Helper()
	framework.Eventually(t, "the control plane to know "+name+" "+what, func(context.Context) error {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		return errors.Join(c.err, right(c.clusters[name]))
	})
}

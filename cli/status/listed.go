package status

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
)

// listed are the clusters of the registry, which are listed once and followed by events from
// then on.
type listed struct {
	mu sync.Mutex
	// clusters are nil until they are listed, and when events were lost.
	clusters map[string]*v1beta1.Cluster
	version  string
}

// read returns the clusters, which it lists only where they are not known.
func (l *listed) read(ctx context.Context, from typed.ClusterInterface) ([]*v1beta1.Cluster, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clusters == nil {
		all := map[string]*v1beta1.Cluster{}
		version, err := command.EachCluster(ctx, from, "", func(cluster *v1beta1.Cluster) { all[cluster.Name] = cluster })
		if err != nil {
			return nil, err
		}
		l.clusters, l.version = all, version
	}
	out := make([]*v1beta1.Cluster, 0, len(l.clusters))
	for _, cluster := range l.clusters {
		out = append(out, cluster)
	}
	return out, nil
}

// from returns the version to watch from; empty while nothing is listed.
func (l *listed) from() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clusters == nil {
		return ""
	}
	return l.version
}

// forget has the clusters listed again.
func (l *listed) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clusters = nil
}

// take takes an event over.
func (l *listed) take(event watch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cluster, ok := event.Object.(*v1beta1.Cluster)
	switch {
	case !ok: // such as an error: the version is too old
		l.clusters = nil
		return
	case l.clusters == nil:
		return
	case event.Type == watch.Deleted:
		delete(l.clusters, cluster.Name)
	case event.Type == watch.Added, event.Type == watch.Modified:
		l.clusters[cluster.Name] = cluster
	}
	l.version = cluster.ResourceVersion
}

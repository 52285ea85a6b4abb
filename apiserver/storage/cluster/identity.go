package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/lock"
)

// idRule lets no two clusters have one id.
func (r *REST) idRule() *rule {
	return &rule{
		of:    func(c *clusterregistry.Cluster) string { return c.Spec.ID },
		lock:  r.locks.Take,
		check: r.idFree,
		clear: func(c *clusterregistry.Cluster) { c.Spec.ID = "" },
		wait:  "giving its spec.id to a cluster",
	}
}

// idFree returns an error when another cluster has the id of a cluster.
func (r *REST) idFree(ctx context.Context, cluster *clusterregistry.Cluster, held *lock.Lock) error {
	object, err := r.listSince(ctx, match(labels.Everything(), fields.OneTermEqualSelector(idField, cluster.Spec.ID)), held)
	if err != nil {
		return err
	}
	for _, other := range object.(*clusterregistry.ClusterList).Items {
		if other.UID != cluster.UID {
			taken := field.Duplicate(field.NewPath("spec", "id"), cluster.Spec.ID)
			taken.Detail = "another cluster has it; kubectl get crc --field-selector=spec.id=" + cluster.Spec.ID + " shows which"
			return invalid(cluster, taken)
		}
	}
	return nil
}

// progressPatience is how long a request waits to ask etcd how far the watch cache is.
// The cache asks as often itself.
const progressPatience = 100 * time.Millisecond

// listSince lists clusters with all that was written before a lock was taken, which holds
// all that others have written with the same lock; without one, in etcd's latest state.
//
// The watch cache doesn't see that a lock is written, and would take a tenth of a second to
// find out that it has missed nothing. So it is told to ask etcd at once, and need not have
// what came after the lock.
func (r *REST) listSince(ctx context.Context, selected storage.SelectionPredicate, held *lock.Lock) (runtime.Object, error) {
	if held != nil && held.Version() != "" {
		asking, cancel := context.WithTimeout(ctx, progressPatience)
		_ = r.Storage.Storage.RequestWatchProgress(asking) // or the cache asks
		cancel()
		since := &internalversion.ListOptions{ResourceVersion: held.Version(), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
		object, err := r.ListPredicate(ctx, selected, since)
		if !storage.IsTooLargeResourceVersion(err) {
			return object, err
		}
	}
	return r.ListPredicate(ctx, selected, &internalversion.ListOptions{})
}

// invalid refuses what a cluster was to become.
func invalid(cluster *clusterregistry.Cluster, fault *field.Error) error {
	return apierrors.NewInvalid(clusterregistry.SchemeGroupVersion.WithKind("Cluster").GroupKind(), cluster.Name, field.ErrorList{fault})
}

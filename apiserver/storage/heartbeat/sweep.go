package heartbeat

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// period is how long heartbeats stay after their cluster, with up to a fifth more at random.
const period = time.Minute

// Sweep removes the heartbeats of clusters that are gone until the context ends. Every server
// of a registry does. Both are looked for in watch caches, and only what is missing there is
// asked of etcd.
func (r *REST) Sweep(ctx context.Context) {
	wait.JitterUntilWithContext(ctx, r.SweepOnce, period, 0.2, true)
}

// SweepOnce removes them once. What can't be read or deleted is left for the next time.
func (r *REST) SweepOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, period)
	defer cancel()
	object, err := r.List(ctx, &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		klog.FromContext(ctx).Error(err, "ClusterHeartbeats can't be listed, and those of deleted clusters are removed later")
		return
	}
	beats := object.(*clusterregistry.ClusterHeartbeatList).Items
	for i := range beats {
		if err := r.remove(ctx, &beats[i]); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "A ClusterHeartbeat of a deleted cluster can't be removed, and is later", "clusterHeartbeat", beats[i].Name)
			return
		}
	}
}

// remove deletes a heartbeat if its cluster is gone, or is another one of this name, unless
// it was written meanwhile.
func (r *REST) remove(ctx context.Context, beat *clusterregistry.ClusterHeartbeat) error {
	for _, version := range []string{"0", ""} {
		cluster, err := r.clusters.Get(ctx, beat.ClusterName, &metav1.GetOptions{ResourceVersion: version})
		switch {
		case err == nil && cluster.(*clusterregistry.Cluster).UID == beat.ClusterUID:
			return nil
		case err != nil && !apierrors.IsNotFound(err):
			return err
		}
	}
	options := metav1.NewRVDeletionPrecondition(beat.ResourceVersion)
	_, _, err := r.Delete(ctx, beat.Name, rest.ValidateAllObjectFunc, options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

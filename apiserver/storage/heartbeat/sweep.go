package heartbeat

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
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
	running, cancel := context.WithTimeout(ctx, period)
	defer cancel()
	if err := r.sweep(running); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "ClusterHeartbeats of deleted clusters are not all removed, and are later")
	}
}

// sweep continues after an error, and returns the first one.
func (r *REST) sweep(ctx context.Context) (first error) {
	beats, err := r.List(ctx, &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	clusters, err := r.clusters.List(ctx, &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	live := map[string]types.UID{}
	for i := range clusters.(*clusterregistry.ClusterList).Items {
		cluster := &clusters.(*clusterregistry.ClusterList).Items[i]
		live[cluster.Name] = cluster.UID
	}
	for i := range beats.(*clusterregistry.ClusterHeartbeatList).Items {
		beat := &beats.(*clusterregistry.ClusterHeartbeatList).Items[i]
		if uid, is := live[beat.ClusterName]; is && uid == beat.ClusterUID {
			continue
		}
		if ctx.Err() != nil {
			return cmp.Or(first, ctx.Err())
		}
		if err := r.remove(ctx, beat); err != nil && first == nil {
			first = fmt.Errorf("%s: %w", beat.Name, err)
		}
	}
	return first
}

// remove deletes a heartbeat if etcd says as well that its cluster is gone, or is another one
// of this name.
func (r *REST) remove(ctx context.Context, beat *clusterregistry.ClusterHeartbeat) error {
	cluster, err := r.clusters.Get(ctx, beat.ClusterName, &metav1.GetOptions{})
	switch {
	case err == nil && cluster.(*clusterregistry.Cluster).UID == beat.ClusterUID:
		return nil
	case err != nil && !apierrors.IsNotFound(err):
		return err
	}
	return r.purge(ctx, beat)
}

// purge deletes a heartbeat, unless it was written since it was read. It goes around the
// store, for which finalizers would keep it.
func (r *REST) purge(ctx context.Context, beat *clusterregistry.ClusterHeartbeat) error {
	key, err := r.Store.KeyFunc(ctx, beat.Name)
	if err != nil {
		return err
	}
	as := &storage.Preconditions{UID: &beat.UID, ResourceVersion: &beat.ResourceVersion}
	err = r.Store.Storage.Delete(ctx, key, r.New(), as, rest.ValidateAllObjectFunc, false, nil, storage.DeleteOptions{})
	if storage.IsNotFound(err) || storage.IsInvalidObj(err) || storage.IsConflict(err) {
		return nil
	}
	return storeerr.InterpretDeleteError(err, Resource, beat.Name)
}

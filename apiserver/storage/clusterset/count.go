package clusterset

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apiserver/storage/inprocess"
)

const (
	// settle is how long changes of clusters are collected before the status of their
	// sets is written: a controller reports of many clusters at a time.
	settle = time.Second
	// recount is how often all sets are looked at, with jitter: for those that another
	// server, which lagged behind, has written last.
	recount = 5 * time.Minute
	// pause is how long a server waits after a status could not be written.
	pause = 5 * time.Second
)

// Count keeps the status of all sets until the context ends, by the clusters in a storage.
// Every server of a registry does: a status that is right already is not written again.
// Each writes only what it was told of clusters since, so that one that lags behind does
// not undo what the others write again and again.
func (r *REST) Count(ctx context.Context, clusters rest.StandardStorage) {
	t := newTally()
	reflector := cache.NewReflectorWithOptions(inprocess.ListWatch(clusters), &clusterregistry.Cluster{}, t, cache.ReflectorOptions{Name: "clustersets"})
	go reflector.RunWithContext(ctx)
	// Before it knows all clusters, it would write that sets have too few.
	if wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) { return reflector.LastSyncResourceVersion() != "", nil }) != nil {
		return // the server stops
	}
	go wait.JitterUntilWithContext(ctx, func(ctx context.Context) { r.countAll(ctx, t) }, recount, 0.2, true)
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		}
		delay := settle
		if !r.writeChanged(ctx, t) {
			delay = pause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// countAll has all stored sets counted once more.
func (r *REST) countAll(ctx context.Context, t *tally) {
	object, err := r.List(ctx, &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		klog.FromContext(ctx).Error(err, "ClusterSets can't be listed, and are counted later")
		return
	}
	for _, set := range object.(*clusterregistry.ClusterSetList).Items {
		if !equality.DeepEqual(set.Status, t.status(set.Name)) {
			t.again(set.Name)
		}
	}
}

// writeChanged writes the status of the sets that have changed, and reports whether it
// could. What is left when a write fails, as without a quorum, counts as changed.
func (r *REST) writeChanged(ctx context.Context, t *tally) bool {
	changed := t.take()
	for i, set := range changed {
		if err := r.writeStatus(ctx, set, t.status(set)); err != nil {
			if ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "The status of a ClusterSet can't be written, and is later", "clusterSet", set, "left", len(changed)-i)
			}
			t.again(changed[i:]...)
			return false
		}
	}
	return true
}

// writeStatus writes the status of a set, unless it is gone.
func (r *REST) writeStatus(ctx context.Context, set string, status clusterregistry.ClusterSetStatus) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	key, err := r.KeyFunc(ctx, set)
	if err != nil {
		return err
	}
	err = r.Storage.Storage.GuaranteedUpdate(ctx, key, &clusterregistry.ClusterSet{}, false, nil, storage.SimpleUpdate(func(stored runtime.Object) (runtime.Object, error) {
		stored.(*clusterregistry.ClusterSet).Status = status
		return stored, nil
	}), nil)
	if storage.IsNotFound(err) {
		return nil
	}
	return err
}

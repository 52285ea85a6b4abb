package health

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	apply "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
)

const (
	// page is how many clusters are listed at a time.
	page = 500
	// again is the time until what could not be taken back is tried again.
	again = 30 * time.Second
)

// Retract takes back what this function has reported of clusters, once it is off: its
// last word would else pass for what is true now. It returns when nothing is left, or ctx
// ends. It writes only to clusters that have a report.
func Retract(ctx context.Context, clusters typed.ClusterInterface, c clock.Clock) {
	for {
		retracted, err := retract(ctx, clusters)
		if retracted > 0 {
			klog.FromContext(ctx).Info("Health is off: reports of clusters were taken back", "clusters", retracted)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).Error(err, "Health is off, but not all of its reports could be taken back yet")
		select {
		case <-ctx.Done():
			return
		case <-c.After(again):
		}
	}
}

// retract goes through all clusters once, and returns of how many it took a report back.
func retract(ctx context.Context, clusters typed.ClusterInterface) (retracted int, err error) {
	options := metav1.ListOptions{Limit: page}
	for {
		list, failed := clusters.List(ctx, options)
		if failed != nil {
			return retracted, errors.Join(err, fmt.Errorf("list clusters: %w", failed))
		}
		for i := range list.Items {
			cluster := &list.Items[i]
			if !reportedOf(cluster) {
				continue
			}
			// What a manager applies no longer has what it has applied before.
			_, failed := clusters.ApplyStatus(ctx, apply.Cluster(cluster.Name).WithUID(cluster.UID), metav1.ApplyOptions{FieldManager: Reporter, Force: true})
			switch {
			case failed == nil:
				retracted++
			case ctx.Err() != nil:
				return retracted, ctx.Err()
			case !apierrors.IsNotFound(failed) && !apierrors.IsConflict(failed): // deleted, and perhaps made again
				err = errors.Join(err, fmt.Errorf("cluster %q: %w", cluster.Name, failed))
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return retracted, err
		}
	}
}

// reportedOf reports whether a cluster has anything that this function has applied.
func reportedOf(cluster *v1beta1.Cluster) bool {
	return ownEntry(statusOf(cluster)) != nil || !owned(cluster).Empty()
}

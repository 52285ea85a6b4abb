package command

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	clusterclient "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/unregistered"
)

// ErrChanged is the error of an update of a cluster that is no longer what it was when
// it was read, or is gone.
var ErrChanged = errors.New("it was changed meanwhile")

// conflicts is how many conflicts an update takes: each means that someone else has
// written the cluster in the moment between a read and the write.
const conflicts = 10

// Update makes a cluster that was read as old the next one. Controllers write the
// status of clusters at any time: a conflict is tried again as long as no one has
// changed what a person compares, and is ErrChanged otherwise. A conflict that is not
// about the stored cluster, such as an id that another request holds, is returned as it
// is. The next differs from the old in labels, annotations or spec.
func Update(ctx context.Context, clusters clusterclient.ClusterInterface, old, next *v1beta1.Cluster, options metav1.UpdateOptions) (*v1beta1.Cluster, error) {
	next = next.DeepCopy()
	for attempt := 1; ; attempt++ {
		made, err := clusters.Update(ctx, next, options)
		if !apierrors.IsConflict(err) || attempt == conflicts {
			return made, err
		}
		now, failed := clusters.Get(ctx, old.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(failed) && !unregistered.Is(failed) {
			return nil, ErrChanged
		}
		if failed != nil {
			return nil, failed
		}
		if now.ResourceVersion == next.ResourceVersion {
			return nil, err
		}
		if !sameEntry(old, now) {
			return nil, ErrChanged
		}
		next.ResourceVersion = now.ResourceVersion
	}
}

// sameEntry reports whether two reads of a cluster are of one object with the same
// entry, whatever its status says.
func sameEntry(old, now *v1beta1.Cluster) bool {
	return old.UID == now.UID && now.DeletionTimestamp.Equal(old.DeletionTimestamp) &&
		equality.DeepEqual(old.Labels, now.Labels) && equality.DeepEqual(old.Annotations, now.Annotations) && equality.DeepEqual(old.Spec, now.Spec)
}

// UpdateStatus writes the status of a cluster, which a function sets in what was read
// of it. On a conflict with a controller the cluster is read again; it is ErrChanged
// when that is gone, or another object or identity.
func UpdateStatus(ctx context.Context, clusters clusterclient.ClusterInterface, read *v1beta1.Cluster, set func(*v1beta1.Cluster)) (*v1beta1.Cluster, error) {
	next := read.DeepCopy()
	for attempt := 1; ; attempt++ {
		before := next.DeepCopy()
		if set(next); equality.DeepEqual(before.Status, next.Status) {
			return before, nil
		}
		written, err := clusters.UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: FieldManager})
		if !apierrors.IsConflict(err) || attempt == conflicts {
			return written, err
		}
		next, err = clusters.Get(ctx, read.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && !unregistered.Is(err) || err == nil && (next.UID != read.UID || next.Spec.ID != read.Spec.ID) {
			return nil, ErrChanged
		}
		if err != nil {
			return nil, err
		}
	}
}

package registryclient

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// page is how many clusters are listed at a time, by their metadata alone: that of so many
// fits into maxAnswer.
const page = 100

// Retraction is how far what some managers have applied to the status of clusters was taken
// back. One with managers alone begins.
type Retraction struct {
	// Managers are the names of field managers.
	Managers []string

	next     string
	complete bool
	// refused is why the first of the clusters was refused that were gone through, and skips
	// has the names of all of these: what takes the time of a step must not take that of the
	// next one, too.
	refused error
	skips   []string
}

// Complete reports whether nothing is left.
func (r Retraction) Complete() bool { return r.complete }

// Retract continues a retraction until it is over, and returns how far it got. What is
// refused of one cluster holds up no other one: when all were gone through, that is the
// error, and the retraction begins again.
func (c *Client) Retract(ctx context.Context, at Retraction, over func() bool) (Retraction, error) {
	again := Retraction{Managers: at.Managers}
	for {
		list, err := c.metadata.List(ctx, metav1.ListOptions{Limit: page, Continue: at.next})
		if err != nil {
			return again, fmt.Errorf("clusters can't be listed: %w", err)
		}
		for i := range list.Items {
			name := list.Items[i].Name
			for _, manager := range applied(&list.Items[i], at.Managers) {
				if slices.Contains(at.skips, name) {
					break
				}
				if over() {
					return at, nil
				}
				if err := c.retract(ctx, &list.Items[i], manager); err != nil {
					at.refused, at.skips = cmp.Or(at.refused, err), append(slices.Clone(at.skips), name)
				}
			}
		}
		switch at.next = list.Continue; {
		case at.next != "" && over():
			return at, nil
		case at.next != "":
		case at.refused != nil:
			return again, at.refused
		default:
			at.complete = true
			return at, nil
		}
	}
}

// applied returns those of the managers that have applied anything to a cluster's status.
func applied(cluster *metav1.PartialObjectMetadata, managers []string) []string {
	return slices.DeleteFunc(slices.Clone(managers), func(manager string) bool {
		return !slices.ContainsFunc(cluster.ManagedFields, func(m metav1.ManagedFieldsEntry) bool {
			return m.Manager == manager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "status"
		})
	})
}

// retract has a manager apply nothing to the status of a cluster: what it has applied
// before goes. A cluster that was deleted, and perhaps made again, has none of that.
func (c *Client) retract(ctx context.Context, cluster *metav1.PartialObjectMetadata, manager string) error {
	nothing := &unstructured.Unstructured{}
	nothing.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind("Cluster"))
	nothing.SetName(cluster.Name)
	nothing.SetUID(cluster.UID)
	_, err := c.clusters(v1beta1.SchemeGroupVersion.Version).ApplyStatus(ctx, cluster.Name, nothing, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("take back what %s has reported of cluster %s: %w", manager, cluster.Name, err)
}

package clusterapi

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// whereabouts is what the host cluster says of a Cluster that is missed.
type whereabouts int

const (
	// unknown means that it can't be said: the entry stays as it is.
	unknown whereabouts = iota
	// there means that the Cluster is there.
	there
	// absent means that it is gone.
	absent
	// replaced means that its namespace is not the one that it was in.
	replaced
	// removed means that Cluster API is gone, or going.
	removed
)

// find asks the host cluster where a Cluster is that an entry is for. Whether Cluster API
// is there is asked last: when its CRD is deleted, that is said before objects go.
func (c *Controller) find(ctx context.Context, key types.NamespacedName, entry *v1beta1.Cluster) (whereabouts, error) {
	may, err := c.permitted(ctx, key.Namespace)
	switch was := entry.Annotations[NamespaceAnnotation]; {
	case err != nil || may.Closed != "":
		return unknown, err
	case was != "" && was != string(may.UID):
		return replaced, nil
	}
	source, err := c.Source.Get(ctx, key.Namespace, key.Name)
	switch {
	case err == nil && string(source.UID) == entry.Spec.SourceRef.UID:
		return there, nil
	case err != nil && !apierrors.IsNotFound(err):
		return unknown, fmt.Errorf("read the Cluster %s: %w", key, err)
	}
	served, err := c.Source.Served(ctx)
	switch {
	case err != nil:
		return unknown, fmt.Errorf("ask the host cluster whether Cluster API is there: %w", err)
	case served != ServedYes:
		return removed, nil
	}
	return absent, nil
}

// leave does what is due with an entry whose Cluster is not seen any more.
func (c *Controller) leave(ctx context.Context, n *namespace, key types.NamespacedName, entry *v1beta1.Cluster) error {
	if wait := confirm - c.Clock.Since(c.miss(types.UID(entry.Spec.SourceRef.UID))); wait > 0 {
		c.queue.AddAfter(key, wait)
		return nil
	}
	if !isOurs(n, key, entry) {
		return nil
	}
	found, err := c.find(ctx, key, entry)
	switch found {
	case unknown, there:
		if err == nil { // the next look at the namespace, or the informer, tells more
			c.queue.AddAfter(key, c.Period)
		}
		return err
	case replaced:
		return c.keep(ctx, entry, ReasonNamespaceReplaced)
	case removed:
		return c.keep(ctx, entry, ReasonClusterAPIRemoved)
	}
	switch why := entry.Annotations[KeepAnnotation]; {
	case why != "":
		return c.keep(ctx, entry, why)
	case c.wasMoved(entry):
		return c.keep(ctx, entry, ReasonMoved)
	}
	return c.retire(ctx, key, entry, ReasonDeleted, fmt.Sprintf("Cluster %s with the UID %s was deleted.", key, entry.Spec.SourceRef.UID), func() (bool, error) { return true, nil })
}

// isOurs reports whether an entry is still for a Cluster of a namespace.
func isOurs(n *namespace, key types.NamespacedName, entry *v1beta1.Cluster) bool {
	of, ours := sourceOf(entry)
	return ours && of == key && key.Namespace == n.name
}

// wasMoved reports whether a Cluster that is gone was moved: it was marked so, or it was
// paused, when Cluster API itself deletes nothing.
func (c *Controller) wasMoved(entry *v1beta1.Cluster) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved[types.UID(entry.Spec.SourceRef.UID)] || meta.IsStatusConditionTrue(ownConditions(entry), clusterv1.PausedCondition)
}

// miss returns since when a Cluster is missed.
func (c *Controller) miss(uid types.UID) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.missed[uid]
	if !ok {
		since = c.Clock.Now()
		c.missed[uid] = since
	}
	return since
}

// seen forgets that a Cluster was missed.
func (c *Controller) seen(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.missed, uid)
	delete(c.moved, uid)
}

// messages are for people, by what this package keeps an entry for.
var messages = map[string]string{
	ReasonMoved:             "The Cluster was moved to another management cluster, such as by clusterctl move: the entry stays.",
	ReasonClusterAPIRemoved: "Cluster API is not there in the version v1beta2, or its CRD was deleted with all Clusters: the entry stays.",
	ReasonNamespaceReplaced: "The namespace of the Cluster was made again, or this is another host cluster than the entry was made in: the entry stays.",
}

// keep marks an entry as one that stays, whatever the deletion policy, and reports that.
func (c *Controller) keep(ctx context.Context, entry *v1beta1.Cluster, why string) error {
	updated, err := c.update(ctx, entry, func(entry *v1beta1.Cluster) {
		if entry.Annotations[KeepAnnotation] == "" {
			metav1.SetMetaDataAnnotation(&entry.ObjectMeta, KeepAnnotation, why)
		}
	})
	if err != nil {
		return err
	}
	why = updated.Annotations[KeepAnnotation]
	message := messages[why]
	if message == "" {
		why, message = ReasonKept, "The Cluster is gone, and the entry stays because of the annotation "+KeepAnnotation+"."
	}
	_, err = c.write(ctx, updated, gone(updated, joined(metav1.ConditionUnknown, why, message)))
	return err
}

// unselected does what is due with the entry of a Cluster that isn't selected any more.
func (c *Controller) unselected(ctx context.Context, source *clusterv1.Cluster, entry *v1beta1.Cluster) error {
	key := keyOf(source)
	message := fmt.Sprintf("Cluster %s is not selected any more: clusterAPI.selector does not match the labels of the Cluster and its namespace, or one of them has the label %s.", key, IgnoreLabel)
	return c.retire(ctx, key, entry, ReasonUnselected, message, func() (bool, error) {
		may, err := c.permitted(ctx, key.Namespace)
		if err != nil || may.Closed != "" {
			return false, err
		}
		now, err := c.Source.Get(ctx, key.Namespace, key.Name)
		if err != nil {
			return false, err
		}
		return now.UID == source.UID && !c.selected(now, may.Labels), nil
	})
}

// retire reports that a cluster has left, and deletes its entry after the grace period if
// the policy is so and it is sure then that the cluster has.
func (c *Controller) retire(ctx context.Context, key types.NamespacedName, entry *v1beta1.Cluster, reason, message string, sure func() (bool, error)) error {
	due := c.Policy == PolicyDelete && entry.Annotations[KeepAnnotation] == ""
	if due {
		message += fmt.Sprintf(" The entry is deleted %s after that.", c.Grace)
	}
	reported, err := c.write(ctx, entry, gone(entry, joined(metav1.ConditionFalse, reason, message)))
	if err != nil || !due {
		return err
	}
	since := meta.FindStatusCondition(ownConditions(reported), v1beta1.ConditionJoined)
	if since == nil {
		return fmt.Errorf("cluster %q does not have what was reported of it", entry.Name)
	}
	if wait := c.Grace - c.Clock.Since(since.LastTransitionTime.Time); wait > 0 {
		c.queue.AddAfter(key, wait)
		return nil
	}
	if left, err := sure(); err != nil || !left {
		return err
	}
	// Whoever has changed the entry meanwhile, such as to keep it, is heard first.
	err = c.Clusters.Delete(ctx, reported.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &reported.UID, ResourceVersion: &reported.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	c.seen(types.UID(entry.Spec.SourceRef.UID))
	return nil
}

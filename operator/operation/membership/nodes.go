package membership

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"

	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
)

// nodes returns how many members the nodes have room for, each on one of its own: as many
// as there are nodes that members may run on. Where the spec has constraints of its own on
// how members are spread, or nodes can't be read, it is for the scheduler to say.
func (c *Change) nodes(ctx context.Context) (int, error) {
	etcd := c.Registry.Spec.Etcd
	if len(etcd.TopologySpreadConstraints) > 0 {
		return most, nil
	}
	list, err := c.readNodes(ctx)
	if list == nil {
		return most, err
	}
	selector, room := labels.SelectorFromSet(etcd.NodeSelector), 0
	for _, node := range list {
		repels := func(taint *corev1.Taint) bool {
			return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
		}
		_, repelled := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, etcd.Tolerations, repels, false)
		if selector.Matches(labels.Set(node.Labels)) && !repelled && !node.Spec.Unschedulable && node.DeletionTimestamp == nil {
			room++
		}
	}
	return min(room, most), nil
}

// readNodes returns the nodes of the host cluster, nil when the operator may not read them.
func (c *Change) readNodes(ctx context.Context) ([]corev1.Node, error) {
	list := &corev1.NodeList{}
	err := c.Live.List(ctx, list)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err == nil && list.Items == nil {
		list.Items = []corev1.Node{}
	}
	return list.Items, err
}

// withoutNode reports whether a volume can be used on nodes that are all gone, as that of a
// local disk is whose node was deleted.
func (c *Change) withoutNode(ctx context.Context, pv *corev1.PersistentVolume) (bool, error) {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return false, nil
	}
	list, err := c.readNodes(ctx)
	if err != nil || len(list) == 0 {
		return false, err
	}
	if _, err := nodeaffinity.NewNodeSelector(pv.Spec.NodeAffinity.Required); err != nil {
		return false, nil // nothing follows from what can't be understood
	}
	for i := range list {
		if volume.CheckNodeAffinity(pv, list[i].Labels) == nil {
			return false, nil
		}
	}
	return true, nil
}

// lostSince returns since when a member is noted as lost, and notes it if it is not.
func (c *Change) lostSince(ordinal int) metav1.Time {
	members := c.Registry.Status.Etcd.Members
	for i := range members {
		if members[i].Name != c.member(ordinal) {
			continue
		}
		if members[i].LostTime == nil {
			members[i].LostTime = &metav1.Time{Time: c.Now}
		}
		return *members[i].LostTime
	}
	return metav1.Time{Time: c.Now}
}

// found notes that a member is not lost, or not any more.
func (c *Change) found(ordinal int) {
	members := c.Registry.Status.Etcd.Members
	for i := range members {
		if members[i].Name == c.member(ordinal) {
			members[i].LostTime = nil
		}
	}
}

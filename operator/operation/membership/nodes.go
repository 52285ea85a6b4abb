package membership

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/placement"
	"github.com/clusterregistry/operator/operator/volumes"
)

// nodes returns how many members the nodes have room for, each on one of its own: as many
// as there are nodes that members may run on. Where the spec has constraints of its own on
// how members are spread, or nodes can't be read, it is for the scheduler to say.
func (c *Change) nodes(ctx context.Context) (int, error) {
	etcd := c.Registry.Spec.Etcd
	if len(etcd.TopologySpreadConstraints) > 0 {
		return Most, nil
	}
	nodes, known, err := placement.Nodes(ctx, c.Live)
	if !known {
		return Most, err
	}
	room := 0
	for i := range nodes {
		if placement.Allows(&nodes[i], etcd.Pods) && !nodes[i].Spec.Unschedulable && nodes[i].DeletionTimestamp == nil {
			room++
		}
	}
	return min(room, Most), nil
}

// withoutNode reports whether a volume can be used on nodes that are all gone, as that of a
// local disk is whose node was deleted.
func (c *Change) withoutNode(ctx context.Context, pv *corev1.PersistentVolume) (bool, error) {
	if !placement.Local(pv) {
		return false, nil // a zone without nodes gets some again
	}
	nodes, known, err := placement.Nodes(ctx, c.Live)
	if !known || len(nodes) == 0 {
		return false, err
	}
	names, limited := placement.Usable(pv, nodes)
	return limited && len(names) == 0, nil
}

// crowded says why a member whose pod can't be scheduled will not be, though it may run where its
// volume is: it had shared that node with another member, as where there were too few, and now
// there is one without. Constraints of the spec's own are for the scheduler to say.
func (c *Change) crowded(ctx context.Context, pod *corev1.Pod, pods []corev1.Pod, claim *corev1.PersistentVolumeClaim) (string, error) {
	unschedulable := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable
	})
	if pod.Spec.NodeName != "" || !unschedulable || len(c.Registry.Spec.Etcd.TopologySpreadConstraints) > 0 {
		return "", nil
	}
	others := map[string]string{}
	for i := range pods {
		if pods[i].Name != pod.Name && pods[i].DeletionTimestamp == nil && pods[i].Spec.NodeName != "" {
			others[pods[i].Spec.NodeName] = pods[i].Name
		}
	}
	return placement.Crowded(ctx, c.Live, claim, c.Registry.Spec.Etcd.Pods, others)
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

// followsPod reports whether the volume of a claim was made for the node of the pod that has
// it. Another StorageClass may put each volume where no member may run, so that a member which
// joins would be replaced for that again and again.
func (c *Change) followsPod(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	if volumes.Class(claim) == "" {
		return false, nil // a volume that someone has made, as the next one is
	}
	class := &storagev1.StorageClass{}
	err := c.Live.Get(ctx, client.ObjectKey{Name: volumes.Class(claim)}, class)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer, err
}

// misplaced says what a person can do about a member that joins and can't run where its volume
// lies, by why.
func (c *Change) misplaced(ordinal int, claim *corev1.PersistentVolumeClaim, why string) string {
	its := fmt.Sprintf("Its StorageClass %q", volumes.Class(claim))
	if volumes.Class(claim) == "" {
		its = "It has no StorageClass, and what makes its volumes"
	}
	return fmt.Sprintf("%s. %s is not known to make volumes where pods run (volumeBindingMode WaitForFirstConsumer), so another volume might lie there again: name such a class in spec.etcd.storage.storageClassName, or let the member run there; or try another volume with: kubectl registry etcd replace -n %s %s",
		why, its, c.Registry.Namespace, c.member(ordinal))
}

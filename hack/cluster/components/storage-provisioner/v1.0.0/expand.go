package main

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// retry is how often all claims are looked at, also those of which a change failed.
const retry = 15 * time.Second

// expander lets the volumes of one node grow, as an external resizer does: it gives the
// PersistentVolume the size that its claim requests, and leaves the rest to the kubelet,
// which does that for a mounted volume within about a minute, and for another one when a
// pod next mounts it. A folder has all the space of the node's disk anyway.
type expander struct {
	client kubernetes.Interface
	provisioner
}

// watch begins to look at all claims, until the context ends.
func (e expander) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(e.client, retry)
	expand := func(object any) {
		claim, is := object.(*corev1.PersistentVolumeClaim)
		if !is || !requestsMore(claim) {
			return
		}
		if err := e.expand(ctx, claim); err != nil {
			klog.Errorf("expand the volume of %s/%s, which is tried again within %s: %v", claim.Namespace, claim.Name, retry, err)
		}
	}
	_, err := factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: expand, UpdateFunc: func(_, now any) { expand(now) },
	})
	factory.Start(ctx.Done())
	return err
}

// requestsMore reports whether a claim has a volume and requests a larger one.
func requestsMore(claim *corev1.PersistentVolumeClaim) bool {
	requested, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	return claim.Spec.VolumeName != "" && claim.Status.Phase == corev1.ClaimBound && requested.Cmp(has) > 0
}

// expand lets the volume of a claim grow, if it is a folder of this node.
func (e expander) expand(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	volume, err := e.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if volume.Annotations["pv.kubernetes.io/provisioned-by"] != provisionerName || hostname(volume) != e.node || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID {
		return nil
	}
	requested := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if has := volume.Spec.Capacity[corev1.ResourceStorage]; has.Cmp(requested) < 0 {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"capacity": corev1.ResourceList{corev1.ResourceStorage: requested}}})
		if err != nil {
			return err
		}
		if _, err := e.client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	for _, condition := range claim.Status.Conditions {
		if condition.Type == corev1.PersistentVolumeClaimFileSystemResizePending {
			return nil
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.PersistentVolumeClaimCondition{{
		Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		Message: "waiting for the kubelet to resize the file system",
	}}}})
	if err != nil {
		return err
	}
	_, err = e.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

package volumes

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/render"
)

// Differ says which claims are smaller, or of another class, than the spec
// asks for, what follows from it and what can be done; nothing when none is. Members with
// claims of another class are replaced, if any can be: that is said elsewhere.
func (v Volumes) Differ(registry *operatorv1alpha1.ClusterRegistry) string {
	var out []string
	wanted := render.EtcdStorage(registry)
	if limited := v.QuotaDiffers(registry); limited != "" {
		out = append(out, limited)
	} else if small := smaller(wanted, v.counted()); small != "" {
		out = append(out, fmt.Sprintf("%s, and spec.etcd.storage.size is %s: nothing has to be done%s", small, wanted.String(), cmp.Or(v.holds(v.counted()), v.unasked(registry, v.counted()))))
	}
	if v.Snapshots != nil {
		room := render.SnapshotsStorage(registry, v.Rendered())
		// One that has its request is resized when the next snapshot uses it.
		if small := smaller(room, []corev1.PersistentVolumeClaim{*v.Snapshots}); small != "" && !requests(v.Snapshots, room) {
			out = append(out, fmt.Sprintf("%s, and the snapshots of an etcd that is full take up to %s: an upgrade waits if they don't fit; enlarge the claim, or delete it with the snapshots in it, and the next upgrade creates it again%s", small, room.String(), v.holds([]corev1.PersistentVolumeClaim{*v.Snapshots})))
		}
	}
	return strings.Join(out, "; ")
}

// QuotaDiffers says which claims are too small for the quota that etcd has, or make
// it less than the spec alone would, and what can be done; nothing when none does.
func (v Volumes) QuotaDiffers(registry *operatorv1alpha1.ClusterRegistry) string {
	found := v.Rendered()
	quota, claims, wanted := v.EtcdQuota(registry), v.counted(), render.EtcdStorage(registry)
	found.Quota = 0
	fits := render.EtcdQuota(registry, found)
	room := *resource.NewQuantity(2*quota, resource.BinarySI)
	if small := smaller(room, claims); quota > fits && small != "" {
		return fmt.Sprintf("%s, and etcd's quota is %d MiB of data, which is more than half of the volume and is not lowered while etcd exists: the volume may be full before etcd refuses writes; enlarge each of these claims to %s where its StorageClass allows it (spec.resources.requests.storage), or keep etcd's data below %d MiB (remove clusters, defragment each member)%s",
			small, quota>>20, room.String(), fits>>20, v.holds(claims))
	}
	if quota < render.EtcdQuota(registry, render.Volumes{}) {
		return fmt.Sprintf("%s, and spec.etcd.storage.size is %s: etcd's quota follows the smallest volume and is %d MiB of data%s", smaller(wanted, claims), wanted.String(), quota>>20, cmp.Or(v.holds(claims), v.unasked(registry, claims), "; it is raised when all volumes have grown"))
	}
	return ""
}

// smaller names the claims whose volumes are smaller than a size.
func smaller(size resource.Quantity, claims []corev1.PersistentVolumeClaim) string {
	var out []string
	for i := range claims {
		has := capacity(&claims[i])
		if has.Cmp(size) >= 0 {
			continue
		}
		verb, requested := "has", claims[i].Spec.Resources.Requests[corev1.ResourceStorage]
		if !hasVolume(&claims[i]) {
			verb = "requests"
		}
		text := fmt.Sprintf("PersistentVolumeClaim %s %s %s", claims[i].Name, verb, has.String())
		if requested.Cmp(has) > 0 {
			text += fmt.Sprintf(" (%s requested%s)", requested.String(), pending(&claims[i]))
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// requests reports whether a claim requests a size at least.
func requests(claim *corev1.PersistentVolumeClaim, size resource.Quantity) bool {
	requested := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return requested.Cmp(size) >= 0
}

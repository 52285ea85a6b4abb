// Package volumes has the claims of a registry's own etcd: what there is of them, which
// quota follows for etcd, and how they differ from what the registry asks for.
package volumes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/render"
)

// Volumes are the claims of a registry's own etcd. They outlive the registry, and
// one that is created again takes them over as they are, whatever its spec says.
type Volumes struct {
	// Members are the claims of etcd's members, as far as there are any.
	Members []corev1.PersistentVolumeClaim
	// Snapshots is the claim for snapshots, nil when there is none.
	Snapshots *corev1.PersistentVolumeClaim
	// Quota is what etcd's StatefulSet has, in bytes, zero when there is none.
	Quota int64
	// Template is what its StatefulSet has new claims request, zero when there is none.
	Template resource.Quantity
	// TemplateClass is the StorageClass of new claims, empty for the default one.
	TemplateClass string

	// held says why claims can't grow, by name.
	held map[string]string
}

// Rendered returns what the registry's objects depend on.
func (v Volumes) Rendered() render.Volumes {
	out := render.Volumes{Quota: v.Quota, Template: v.Template, TemplateClass: v.TemplateClass}
	claims := v.counted()
	for i := range claims {
		if size := capacity(&claims[i]); out.Member.IsZero() || size.Cmp(out.Member) < 0 {
			out.Member = size
		}
	}
	if v.Snapshots != nil {
		out.Snapshots = &v.Snapshots.Spec
	}
	return out
}

// EtcdQuota returns how many bytes of data a member of the registry's etcd may hold.
func (v Volumes) EtcdQuota(registry *operatorv1alpha1.ClusterRegistry) int64 {
	return render.EtcdQuota(registry, v.Rendered())
}

// counted returns the members' claims that decide on etcd's quota: those with a
// volume or, as long as none has one, all. A claim that never gets one must not
// limit the members that run.
func (v Volumes) counted() []corev1.PersistentVolumeClaim {
	var out []corev1.PersistentVolumeClaim
	for i := range v.Members {
		if hasVolume(&v.Members[i]) {
			out = append(out, v.Members[i])
		}
	}
	if out == nil {
		return v.Members
	}
	return out
}

// capacity returns how large the volume of a claim is: what the host says of it or,
// as long as there is none, what the claim asks for.
func capacity(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	if hasVolume(claim) {
		return claim.Status.Capacity[corev1.ResourceStorage]
	}
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// hasVolume reports whether a claim has got its volume.
func hasVolume(claim *corev1.PersistentVolumeClaim) bool {
	size := claim.Status.Capacity[corev1.ResourceStorage]
	return !size.IsZero()
}

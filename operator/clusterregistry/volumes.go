package clusterregistry

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/render"
)

// volumes are the claims of a registry's own etcd. They outlive the registry, and
// one that is created again takes them over as they are, whatever its spec says.
type volumes struct {
	// members are the claims of etcd's members, as far as there are any.
	members []corev1.PersistentVolumeClaim
	// snapshots is the claim for snapshots, nil when there is none.
	snapshots *corev1.PersistentVolumeClaim
}

// readVolumes returns the claims of a registry. The host is asked for each by its
// name: neither a late cache nor a lost label may hide data.
func (r *Reconciler) readVolumes(ctx context.Context, s *scope) (volumes, error) {
	found := volumes{}
	if s.registry.Spec.Etcd.External != nil {
		return found, nil
	}
	for _, member := range render.EtcdMembers(s.registry) {
		claim, err := r.claim(ctx, s.registry.Namespace, "data-"+member.Name)
		if err != nil {
			return volumes{}, err
		}
		if claim != nil {
			found.members = append(found.members, *claim)
		}
	}
	var err error
	found.snapshots, err = r.claim(ctx, s.registry.Namespace, s.registry.Name+snapshotsSuffix)
	return found, err
}

// claim reads a claim, nil when there is none.
func (r *Reconciler) claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return claim, err
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

// counted returns the members' claims that decide on etcd's quota: those with a
// volume or, as long as none has one, all. A claim that never gets one must not
// limit the members that run.
func (v volumes) counted() []corev1.PersistentVolumeClaim {
	var out []corev1.PersistentVolumeClaim
	for i := range v.members {
		if hasVolume(&v.members[i]) {
			out = append(out, v.members[i])
		}
	}
	if out == nil {
		return v.members
	}
	return out
}

// rendered returns what the registry's objects depend on.
func (v volumes) rendered() render.Volumes {
	out := render.Volumes{}
	claims := v.counted()
	for i := range claims {
		if size := capacity(&claims[i]); out.Member.IsZero() || size.Cmp(out.Member) < 0 {
			out.Member = size
		}
	}
	if v.snapshots != nil {
		out.Snapshots = &v.snapshots.Spec
	}
	return out
}

// etcdQuota returns how many bytes of data a member may hold.
func (s *scope) etcdQuota() int64 {
	return render.EtcdQuota(s.registry, s.volumes.rendered())
}

// volumesDiffer says which claims are smaller, or of another class, than the spec
// asks for, what follows from it and what can be done; nothing when none is.
func (s *scope) volumesDiffer() string {
	var out []string
	wanted := render.EtcdStorage(s.registry)
	if small := smaller(wanted, s.volumes.counted()); small != "" {
		out = append(out, fmt.Sprintf("%s, and spec.etcd.storage.size is %s: etcd's quota follows the smallest volume and is %d MiB of data; for more, enlarge each claim where its StorageClass allows it (spec.resources.requests.storage), and the quota follows", small, wanted.String(), s.etcdQuota()>>20))
	}
	all := s.volumes.members
	if s.volumes.snapshots != nil {
		room := render.SnapshotsStorage(s.registry, s.volumes.rendered())
		if small := smaller(room, []corev1.PersistentVolumeClaim{*s.volumes.snapshots}); small != "" {
			out = append(out, fmt.Sprintf("%s, and the snapshots of an etcd that is full take up to %s: an upgrade waits if they don't fit; enlarge the claim, or delete it with the snapshots in it, and the next upgrade creates it again", small, room.String()))
		}
		all = append(all[:len(all):len(all)], *s.volumes.snapshots)
	}
	if other := ofOtherClass(s.registry.Spec.Etcd.Storage, all); other != "" {
		out = append(out, fmt.Sprintf("%s, and spec.etcd.storage.storageClassName is %s: volumes keep their class, and nothing has to be done", other, s.registry.Spec.Etcd.Storage.StorageClassName))
	}
	return strings.Join(out, "; ")
}

// noteVolumes keeps EtcdReady true, and has it say that the claims are not what the
// spec asks for: that was so when they were taken over, and does not go away.
func (s *scope) noteVolumes() {
	if differ := s.volumesDiffer(); differ != "" {
		s.note(operatorv1alpha1.ConditionEtcdReady, operatorv1alpha1.ReasonVolumesDiffer, differ)
	}
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
			text += fmt.Sprintf(" (%s requested)", requested.String())
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// ofOtherClass names the claims of another class than the one that is asked for.
func ofOtherClass(storage *operatorv1alpha1.Storage, claims []corev1.PersistentVolumeClaim) string {
	if storage == nil || storage.StorageClassName == "" {
		return ""
	}
	var out []string
	for _, claim := range claims {
		if of := claim.Spec.StorageClassName; of != nil && *of != storage.StorageClassName {
			out = append(out, fmt.Sprintf("PersistentVolumeClaim %s is of StorageClass %s", claim.Name, *of))
		}
	}
	return strings.Join(out, ", ")
}

package clusterregistry

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// volumes are the claims of a registry's own etcd. They outlive the registry, and
// one that is created again takes them over as they are, whatever its spec says.
type volumes struct {
	// members are the claims of etcd's members, as far as there are any.
	members []corev1.PersistentVolumeClaim
	// snapshots is the claim for snapshots, nil when there is none.
	snapshots *corev1.PersistentVolumeClaim
	// quota is what etcd's StatefulSet has, zero when there is none.
	quota int64
}

// readVolumes returns the claims of a registry, and the quota that its etcd runs with.
// The host is asked for each by its name: neither a late cache nor a lost label may
// hide data, or have the quota lowered.
func (r *Reconciler) readVolumes(ctx context.Context, s *scope) (volumes, error) {
	found := volumes{}
	if s.registry.Spec.Etcd.External != nil {
		return found, nil
	}
	for _, member := range render.EtcdMembers(s.registry, s.members) {
		claim, err := r.claim(ctx, s.registry.Namespace, contract.EtcdMemberClaim(member.Name))
		if err != nil {
			return volumes{}, err
		}
		if claim != nil {
			found.members = append(found.members, *claim)
		}
	}
	var err error
	if found.quota, err = r.runningQuota(ctx, s); err != nil {
		return volumes{}, err
	}
	found.snapshots, err = r.claim(ctx, s.registry.Namespace, s.registry.Name+contract.SnapshotsSuffix)
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

// runningQuota returns the quota that etcd's StatefulSet has, zero when there is none.
func (r *Reconciler) runningQuota(ctx context.Context, s *scope) (int64, error) {
	set := &appsv1.StatefulSet{}
	if err := r.Live.Get(ctx, s.key(contract.EtcdSuffix), set); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	for _, container := range set.Spec.Template.Spec.Containers {
		for _, arg := range container.Args {
			text, is := strings.CutPrefix(arg, "--quota-backend-bytes=")
			if !is {
				continue
			}
			// What is not a number, etcd would not start with.
			quota, err := strconv.ParseInt(text, 10, 64)
			if err == nil && quota == 0 {
				quota = etcdDefaultQuota
			}
			return max(0, quota), nil
		}
	}
	return 0, nil
}

// etcdDefaultQuota is what a quota of 0 means to etcd.
const etcdDefaultQuota = 2 << 30

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
	out := render.Volumes{Quota: v.quota}
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

// quotaDiffers says which claims are too small for the quota that etcd has, or make
// it less than the spec alone would, and what can be done; nothing when none does.
func (s *scope) quotaDiffers() string {
	found := s.volumes.rendered()
	quota, claims, wanted := s.etcdQuota(), s.volumes.counted(), render.EtcdStorage(s.registry)
	found.Quota = 0
	fits := render.EtcdQuota(s.registry, found)
	room := *resource.NewQuantity(2*quota, resource.BinarySI)
	if small := smaller(room, claims); quota > fits && small != "" {
		return fmt.Sprintf("%s, and etcd's quota is %d MiB of data, which is more than half of the volume and is not lowered while etcd exists: the volume may be full before etcd refuses writes; enlarge each of these claims to %s where its StorageClass allows it (spec.resources.requests.storage), or keep etcd's data below %d MiB (remove clusters, defragment each member)",
			small, quota>>20, room.String(), fits>>20)
	}
	if quota < render.EtcdQuota(s.registry, render.Volumes{}) {
		return fmt.Sprintf("%s, and spec.etcd.storage.size is %s: etcd's quota follows the smallest volume and is %d MiB of data; for more, enlarge each of these claims where its StorageClass allows it (spec.resources.requests.storage), and the quota follows", smaller(wanted, claims), wanted.String(), quota>>20)
	}
	return ""
}

// volumesDiffer says which claims are smaller, or of another class, than the spec
// asks for, what follows from it and what can be done; nothing when none is.
func (s *scope) volumesDiffer() string {
	var out []string
	wanted := render.EtcdStorage(s.registry)
	if limited := s.quotaDiffers(); limited != "" {
		out = append(out, limited)
	} else if small := smaller(wanted, s.volumes.counted()); small != "" {
		out = append(out, fmt.Sprintf("%s, and spec.etcd.storage.size is %s: nothing has to be done", small, wanted.String()))
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

// volumesNoted returns a verdict that is done with a note on claims that are not what
// the spec asks for: that was so when they were taken over, and does not go away.
func (s *scope) volumesNoted(v verdict.Verdict) verdict.Verdict {
	if differ := s.volumesDiffer(); differ != "" {
		return v.Note(operatorv1alpha1.ReasonVolumesDiffer, differ)
	}
	return v
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

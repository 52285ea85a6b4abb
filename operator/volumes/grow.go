package volumes

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/render"
)

// Growth is a claim that is to request more than it does.
type Growth struct {
	Claim *corev1.PersistentVolumeClaim
	Size  resource.Quantity
	// IsMember is true for the claim of a member, whose size the spec names.
	IsMember bool
}

// Growths returns the claims that request less than a person asks for and that have a
// volume, without which the host refuses any change of a claim. Whether their class lets
// them grow is for the host to say.
func (v Volumes) Growths(registry *operatorv1alpha1.ClusterRegistry) []Growth {
	var out []Growth
	if !v.asked(registry) {
		return nil
	}
	add := func(claim *corev1.PersistentVolumeClaim, size resource.Quantity) {
		if claim != v.Snapshots && v.moves(registry, claim) {
			return // its volume takes no part in what comes
		}
		if hasVolume(claim) && claim.DeletionTimestamp == nil && !requests(claim, size) {
			out = append(out, Growth{claim, size, claim != v.Snapshots})
		}
	}
	for i := range v.Members {
		add(&v.Members[i], render.EtcdStorage(registry))
	}
	if v.Snapshots != nil {
		add(v.Snapshots, render.SnapshotsStorage(registry, v.Rendered()))
	}
	return out
}

// asked reports whether a person asks for larger volumes than the registry was made with,
// which the claim template of its StatefulSet has for good: also of a member that is added
// later, or whose claim is created again. What was taken over smaller than that stays as it
// is, and so it does where the spec names no size: a newer operator, or another default, is
// not to resize the volumes of a registry that runs.
func (v Volumes) asked(registry *operatorv1alpha1.ClusterRegistry) bool {
	storage := registry.Spec.Etcd.Storage
	if storage == nil || v.Template.IsZero() {
		return false
	}
	// A StatefulSet that is about to be recreated, with another class, has the size that is
	// asked for by then: what claims lack of it is asked for, too.
	recreated := render.EtcdClass(registry) != "" && render.EtcdClass(registry) != v.TemplateClass
	return storage.Size.Cmp(v.Template) > 0 || recreated
}

// unasked says what has claims grow that stay smaller than the spec says, since no one has
// asked for more than the registry was made with; nothing for all others.
func (v Volumes) unasked(registry *operatorv1alpha1.ClusterRegistry, claims []corev1.PersistentVolumeClaim) string {
	size := render.EtcdStorage(registry)
	stays := func(claim corev1.PersistentVolumeClaim) bool { return !requests(&claim, size) }
	if v.Template.IsZero() || v.asked(registry) || !slices.ContainsFunc(claims, stays) {
		return ""
	}
	return fmt.Sprintf("; to have the claims grow, set spec.etcd.storage.size to more than %s, with which StatefulSet %s%s was made", v.Template.String(), registry.Name, contract.EtcdSuffix)
}

// Hold notes why a claim can't grow, and what can be done, in a sentence.
func (v *Volumes) Hold(claim, why string) {
	if v.held == nil {
		v.held = map[string]string{}
	}
	v.held[claim] = why
}

// Growing reports whether members' volumes are smaller than the registry asks for, and all
// of these are about to grow.
func (v Volumes) Growing(registry *operatorv1alpha1.ClusterRegistry) bool {
	size, growing := render.EtcdStorage(registry), false
	for _, claim := range v.counted() {
		has := capacity(&claim)
		if has.Cmp(size) >= 0 {
			continue
		}
		if !hasVolume(&claim) || !requests(&claim, size) {
			return false
		}
		growing = true
	}
	return growing
}

// Smallest returns the size of the smallest volume of a member, nil when there is no volume.
func (v Volumes) Smallest() *resource.Quantity {
	claims := v.counted()
	if len(claims) == 0 || !hasVolume(&claims[0]) {
		return nil
	}
	size := v.Rendered().Member
	return &size
}

// holds says why claims can't grow, each after a semicolon; nothing when they can.
func (v Volumes) holds(claims []corev1.PersistentVolumeClaim) string {
	held := ""
	for i := range claims {
		if why := v.held[claims[i].Name]; why != "" {
			held += "; " + why
		}
	}
	return held
}

// pending says how far the host is with a claim that requests more than its volume has.
func pending(claim *corev1.PersistentVolumeClaim) string {
	of := func(types ...corev1.PersistentVolumeClaimConditionType) (message string, found bool) {
		i := slices.IndexFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
			return c.Status == corev1.ConditionTrue && slices.Contains(types, c.Type)
		})
		if i < 0 {
			return "", false
		}
		return claim.Status.Conditions[i].Message, true
	}
	if message, failed := of(corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError); failed {
		return fmt.Sprintf(", and the host cluster fails to resize the volume: %s", message)
	}
	if _, waits := of(corev1.PersistentVolumeClaimFileSystemResizePending); waits {
		return ", and the kubelet is to resize the file system, which some storage allows only when the pod is next started"
	}
	return ""
}

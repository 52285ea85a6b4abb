package volumes

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/render"
)

// Class returns the StorageClass of a claim, empty when it has none.
func Class(claim *corev1.PersistentVolumeClaim) string {
	return volume.GetPersistentVolumeClaimClass(claim)
}

// OtherClass reports whether a claim is of another StorageClass than the registry asks for.
// Where it asks for none, any will do.
func OtherClass(registry *operatorv1alpha1.ClusterRegistry, claim *corev1.PersistentVolumeClaim) bool {
	wanted := render.EtcdClass(registry)
	return wanted != "" && Class(claim) != wanted
}

// moves reports whether a member's claim goes with its member, since that is replaced by one
// whose claim is of the class that is asked for. A single member is not replaced.
func (v Volumes) moves(registry *operatorv1alpha1.ClusterRegistry, claim *corev1.PersistentVolumeClaim) bool {
	return len(v.Members) > 1 && OtherClass(registry, claim)
}

package backup

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// recover takes the data of two of three members away, and has etcd continue with that of the
// third, to which nothing may be missing: nothing is written then.
func (b *bench) recover() []figure {
	b.t.Helper()
	b.idle()
	before, members := b.names(b.registry), b.registry.Status.Etcd.Members
	var volumes []*corev1.PersistentVolume
	for _, member := range members[:2] {
		var claim corev1.PersistentVolumeClaim
		if err := b.e.Get(b.t.Context(), "data-"+member.Name, &claim); err != nil {
			b.t.Fatal(err)
		}
		volumes = append(volumes, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}})
	}
	lose(b.e, b.registry, members[:2], "Left is the data of "+members[2].Name)
	b.e.WaitCondition(b.registry, operatorv1alpha1.ConditionAvailable, metav1.ConditionFalse, operatorv1alpha1.ReasonNotAvailable)
	left := b.registry.Status.Recovery
	approved := time.Now()
	b.e.Change(b.registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Recovery = &operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromMember, Name: members[2].Name, ApprovedFor: left.ID}
	})
	available, ready := b.wait(b.registry, func() bool {
		return framework.Recovered(b.registry, 3) == nil && b.registry.Status.Recovered.ID == left.ID
	})
	if after := b.names(b.registry); !maps.Equal(before, after) {
		b.t.Errorf("there are %d clusters after the recovery, and there were %d, or they have other names", len(after), len(before))
	}
	for _, volume := range volumes { // which the recovery keeps
		if err := b.e.Client.Delete(b.t.Context(), volume); err != nil {
			b.t.Error(err)
		}
	}
	return []figure{
		{"recovery from a lost quorum, from its approval until clients are served (Available)", []time.Duration{available.Sub(approved)}, "by one member"},
		{"recovery, until Ready", []time.Duration{ready.Sub(approved)}, "3 members"},
	}
}

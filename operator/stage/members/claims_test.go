package members

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/verdict"
)

// deletes has someone delete the claim of the member with an ordinal, whose pod keeps it.
func deletes(name string) func(*managed) {
	return func(m *managed) {
		at := metav1.NewTime(m.Now)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data-" + name, UID: "u", DeletionTimestamp: &at, Finalizers: []string{"kubernetes.io/pvc-protection"}}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}
		m.Volumes.Members = append(m.Volumes.Members, *claim)
		m.others = append(m.others, claim, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "team", Name: claim.Name, UID: "u"}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete}})
	}
}

// TestClaimDeleted has the claim of a member be deleted, which would go with its pod: its volume
// is kept at once, the pod is not evicted, and a person learns of it.
func TestClaimDeleted(t *testing.T) {
	const retained, deleted = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
	stuck := func(m *managed) { m.pods[0].Status.Phase = corev1.PodPending }
	for _, test := range []struct {
		reason  string
		members int
		changes []func(*managed)
		says    string // empty where there is nothing to say
		policy  corev1.PersistentVolumeReclaimPolicy
		evicted string
	}{
		{"the only member's", 1, []func(*managed){deletes("fleet-etcd-0")}, "take a backup, since it is the only member, set spec.etcd.replicas to 3", retained, ""},
		{"that of the next one to be replaced", 3, []func(*managed){deletes("fleet-etcd-1")}, "PersistentVolumeClaim data-fleet-etcd-1 of fleet-etcd-1 (PersistentVolume pv with its data is kept)", retained, "fleet-etcd-2"},
		{"that of another one", 3, []func(*managed){deletes("fleet-etcd-2")}, "data-fleet-etcd-2", retained, "fleet-etcd-1"},
		{"while all are of the latest template", 3, []func(*managed){replaced(0, 1, 2), deletes("fleet-etcd-2")}, "kubectl registry etcd replace MEMBER", retained, ""},
		{"of one that is stuck", 1, []func(*managed){stuck, deletes("fleet-etcd-0")}, "data-fleet-etcd-0", retained, ""},
		{"of one that is to be removed, and the next one to be replaced", 3, []func(*managed){deletes("fleet-etcd-1"), func(m *managed) { m.Identity.Record.Leaving = "fleet-etcd-1" }}, "data-fleet-etcd-1", retained, "fleet-etcd-2"},
		{"of one that was removed", 3, []func(*managed){replaced(0, 1, 2), deletes("fleet-etcd-2"), func(m *managed) {
			m.Identity.Record.Leaving = "fleet-etcd-2"
			delete(m.Identity.Record.Members, "fleet-etcd-2")
		}}, "", deleted, ""},
		{"while a lost quorum is recovered", 3, []func(*managed){replaced(0, 1, 2), deletes("fleet-etcd-2"), func(m *managed) { m.Identity.Record.Recovered = &etcd.Recovered{} }}, "", deleted, ""},
		{"while nothing may be changed", 3, []func(*managed){replaced(0, 1, 2), deletes("fleet-etcd-2"), func(m *managed) { m.Freeze("spec.paused is false") }}, "could not be kept", deleted, ""},
	} {
		m := newManaged(t, test.members, test.changes...)
		v := m.besides(m.claimsStay(t.Context()), m.members(t.Context()))
		if v.Err != nil || test.says != "" && (v.Reason != operatorv1alpha1.ReasonClaimTerminating || v.State != verdict.Degraded) || test.says == "" && v.Reason == operatorv1alpha1.ReasonClaimTerminating || !strings.Contains(v.Message, test.says) {
			t.Errorf("%s: %+v", test.reason, v)
		}
		pv := &corev1.PersistentVolume{}
		if err := m.Live.Get(t.Context(), client.ObjectKey{Name: "pv"}, pv); err != nil {
			t.Fatal(err)
		}
		if pv.Spec.PersistentVolumeReclaimPolicy != test.policy {
			t.Errorf("%s: the volume's reclaim policy is %s", test.reason, pv.Spec.PersistentVolumeReclaimPolicy)
		}
		if got := strings.Join(m.evicted, " "); got != test.evicted {
			t.Errorf("%s: evicted %q", test.reason, got)
		}
	}
}

// TestClaimDeletedBesides adds a claim that was deleted to what else is wrong.
func TestClaimDeletedBesides(t *testing.T) {
	m := newManaged(t, 3, deletes("fleet-etcd-1"), func(m *managed) { m.state.Alarms = []etcd.Alarm{{MemberID: "a1", Type: "CORRUPT"}} })
	v := m.besides(m.claimsStay(t.Context()), m.members(t.Context()))
	if v.Reason != operatorv1alpha1.ReasonCorrupt || !strings.Contains(v.Message, "; besides, someone has deleted PersistentVolumeClaim data-fleet-etcd-1") || len(m.evicted) > 0 {
		t.Errorf("%+v, evicted %q", v, m.evicted)
	}
}

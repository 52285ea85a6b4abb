package membership

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/identity"
)

// TestLostNode takes a member's data for gone when its volume is that of a node which was
// deleted, and not while the node is there.
func TestLostNode(t *testing.T) {
	for node, lost := range map[string]bool{"n1": false, "gone": true} {
		w := newWorld(t, 3)
		w.dead[w.name(1)] = true
		pv := &corev1.PersistentVolume{}
		w.must(w.host.Get(t.Context(), client.ObjectKey{Name: "pv-" + w.claim(1)}, pv))
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}
		w.must(w.host.Update(t.Context(), pv))
		change := &Change{Objects: w.objects, Identity: identity.Read(t.Context(), w.objects), State: w.state(), Etcd: w}
		record, _ := change.record()
		claims, err := change.claims(t.Context(), record)
		w.must(err)
		pending := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
		if why, err := change.gone(t.Context(), pending, claims[1]); (why != "") != lost || err != nil || lost && !strings.Contains(why, "on a node that was deleted") {
			t.Errorf("on node %s: %q, %v", node, why, err)
		}
		scheduled := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n0"}}
		if why, _ := change.gone(t.Context(), scheduled, claims[1]); why != "" {
			t.Errorf("its pod has a node: %q", why)
		}
	}
}

// TestMove replaces members, one at a time, whose volumes can't follow them to the nodes that
// the spec asks for.
func TestMove(t *testing.T) {
	w := newWorld(t, 3)
	set := &appsv1.StatefulSet{}
	w.must(w.host.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet-etcd"}, set))
	set.Status.UpdateRevision = "new"
	w.must(w.host.Status().Update(t.Context(), set))
	for _, ordinal := range []int{0, 2} {
		pv := &corev1.PersistentVolume{}
		w.must(w.host.Get(t.Context(), client.ObjectKey{Name: "pv-" + w.claim(ordinal)}, pv))
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}}
		w.must(w.host.Update(t.Context(), pv))
	}
	w.objects.Registry.Spec.Etcd.NodeSelector = map[string]string{corev1.LabelHostname: "n2"}
	w.settle()
	if want := []string{"move leader to fleet-etcd-1", "remove fleet-etcd-0", "add fleet-etcd-0", "promote fleet-etcd-0", "remove fleet-etcd-2", "add fleet-etcd-2", "promote fleet-etcd-2"}; !slices.Equal(w.did, want) {
		t.Errorf("%q", w.did)
	}
}

// TestNodes has no member added for which there is no node.
func TestNodes(t *testing.T) {
	w := newWorld(t, 1)
	for i := 2; i < most; i++ {
		node := &corev1.Node{}
		w.must(w.host.Get(t.Context(), client.ObjectKey{Name: "n" + string(rune('0'+i))}, node))
		switch i {
		case 2:
			node.Spec.Unschedulable = true
		case 3:
			node.Spec.Taints = []corev1.Taint{{Key: "control-plane", Effect: corev1.TaintEffectNoSchedule}}
		default:
			w.must(w.host.Delete(t.Context(), node))
			continue
		}
		w.must(w.host.Update(t.Context(), node))
	}
	w.objects.Registry.Spec.Etcd.Replicas = 3
	said := ""
	for range 10 {
		said, _ = w.reconcile()
	}
	if len(w.did) > 0 || !strings.Contains(said, "there is room for 2 of 3 members") {
		t.Errorf("%q, it says %q", w.did, said)
	}
	w.objects.Registry.Spec.Etcd.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	w.settle()
	if len(w.list) != 3 {
		t.Errorf("with a toleration: %q", w.did)
	}
}

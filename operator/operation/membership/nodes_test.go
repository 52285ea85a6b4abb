package membership

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd/plan"
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

// TestMisplacedWithoutClass is about a claim without a StorageClass, whose volume someone has made.
func TestMisplacedWithoutClass(t *testing.T) {
	w := newWorld(t, 3)
	change := &Change{Objects: w.objects, Identity: identity.Read(t.Context(), w.objects), State: w.state(), Etcd: w}
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("")}}
	change.Live = unread{change.Live}
	if follows, err := change.followsPod(t.Context(), claim); follows || err != nil {
		t.Errorf("follows %v: %v", follows, err)
	}
	if says := change.misplaced(1, claim, "why"); !strings.HasPrefix(says, "why. It has no StorageClass, and what makes its volumes is not known to make volumes where pods run") {
		t.Errorf("it says %q", says)
	}
}

// unread refuses an object without a name, as the client of a host cluster does.
type unread struct{ client.Reader }

func (u unread) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if key.Name == "" {
		return errors.New("resource name may not be empty")
	}
	return u.Reader.Get(ctx, key, object, options...)
}

// TestMisplaced has a member that joins, and can't run where its new volume lies, replaced again
// only where the next volume is made for its pod: else it would be so without end.
func TestMisplaced(t *testing.T) {
	for _, test := range []struct {
		reason string
		class  *storagev1.StorageClass
		again  bool
	}{
		{"volumes are made where pods run", &storagev1.StorageClass{VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)}, true},
		{"volumes are made anywhere", &storagev1.StorageClass{VolumeBindingMode: new(storagev1.VolumeBindingImmediate)}, false},
		{"nothing is said of that", &storagev1.StorageClass{}, false},
		{"the class is gone", nil, false},
	} {
		w := newWorld(t, 3)
		claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
		w.must(w.host.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: contract.EtcdMemberClaim(w.name(1))}, claim))
		claim.Spec.StorageClassName = new("disks")
		w.must(w.host.Update(t.Context(), claim))
		w.must(w.host.Get(t.Context(), client.ObjectKey{Name: "pv-" + w.claim(1)}, pv))
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}}
		w.must(w.host.Update(t.Context(), pv))
		if test.class != nil {
			test.class.Name, test.class.Provisioner = "disks", "test"
			w.must(w.host.Create(t.Context(), test.class))
		}
		w.objects.Registry.Spec.Etcd.NodeSelector = map[string]string{corev1.LabelHostname: "n2"}
		change := &Change{Objects: w.objects, Identity: identity.Read(t.Context(), w.objects), State: w.state(), Etcd: w}
		pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: w.name(1)}}}
		for _, joining := range []int{1, plan.None} {
			seen := plan.Observed{Moves: map[int]string{}}
			w.must(change.moves(t.Context(), &seen, plan.Record{Joining: joining}, &appsv1.StatefulSet{}, pods, map[int]*corev1.PersistentVolumeClaim{1: claim}))
			moves := test.again || joining == plan.None
			if says := seen.Misplaced; (seen.Moves[1] != "") != moves || (says == "") != moves || !moves && (!strings.Contains(says, "can be used on n1 only") || !strings.Contains(says, `Its StorageClass "disks" is not known`) || !strings.HasSuffix(says, "kubectl registry etcd replace -n team fleet-etcd-1")) {
				t.Errorf("%s, %d joins: moves %q, says %q", test.reason, joining, seen.Moves[1], says)
			}
		}
	}
}

// TestNodes has no member added for which there is no node.
func TestNodes(t *testing.T) {
	w := newWorld(t, 1)
	for i := 2; i < Most; i++ {
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

package placement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestStays is about a member on node n1 or n2, and what the spec then asks for.
func TestStays(t *testing.T) {
	node := func(name string, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	dedicated := corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}
	cordoned := corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}
	only := func(values ...string) *corev1.VolumeNodeAffinity {
		return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: values}}}}}}
	}
	selects := func(name string) operatorv1alpha1.Pods {
		return operatorv1alpha1.Pods{NodeSelector: map[string]string{"disk": name}}
	}
	for _, test := range []struct {
		reason    string
		volume    *corev1.VolumeNodeAffinity
		placement operatorv1alpha1.Pods
		nodes     []client.Object
		stays     bool
	}{
		{"any placement", only("n1"), operatorv1alpha1.Pods{}, []client.Object{node("n1"), node("n2")}, false},
		{"the placement is its node", only("n1"), selects("n1"), []client.Object{node("n1"), node("n2")}, false},
		{"the placement is another node", only("n1"), selects("n2"), []client.Object{node("n1"), node("n2")}, true},
		{"the volume can be used on both", only("n1", "n2"), selects("n2"), []client.Object{node("n1"), node("n2")}, false},
		{"the volume can be used anywhere", nil, selects("n2"), []client.Object{node("n1"), node("n2")}, false},
		{"its node was deleted", only("n1"), selects("n2"), []client.Object{node("n2")}, false},
		{"its node has a taint", only("n1"), operatorv1alpha1.Pods{}, []client.Object{node("n1", dedicated), node("n2")}, true},
		{"which is tolerated", only("n1"), operatorv1alpha1.Pods{Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}}, []client.Object{node("n1", dedicated), node("n2")}, false},
		{"its node is cordoned, which passes", only("n1"), operatorv1alpha1.Pods{}, []client.Object{node("n1", cordoned), node("n2")}, false},
		{"an affinity that can't be understood", &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: "Near"}}}}}}, selects("n2"), []client.Object{node("n1"), node("n2")}, false},
	} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: test.volume}}
		host := operandtest.Host(t, append(test.nodes, pv)...)
		why, err := Stays(t.Context(), host.Live, &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}, test.placement)
		if (why != "") != test.stays || err != nil || test.stays && !strings.Contains(why, "its volume pv can be used on n1 only") {
			t.Errorf("%s: %q, %v", test.reason, why, err)
		}
	}
	host := operandtest.Host(t)
	for reason, claim := range map[string]*corev1.PersistentVolumeClaim{"no claim": nil, "no volume": {}, "the volume is gone": {Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}} {
		if why, err := Stays(t.Context(), host.Live, claim, selects("n2")); why != "" || err != nil {
			t.Errorf("%s: %q, %v", reason, why, err)
		}
	}
}

// TestCrowded is about a member whose volume is on node n1, and which the scheduler finds no node
// for.
func TestCrowded(t *testing.T) {
	node := func(name string, ready bool, taints ...corev1.Taint) *corev1.Node {
		status := corev1.ConditionFalse
		if ready {
			status = corev1.ConditionTrue
		}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}}, Spec: corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
	}
	cordoned := node("n3", true)
	cordoned.Spec.Unschedulable = true
	for _, test := range []struct {
		reason  string
		nodes   []client.Object
		others  map[string]string
		crowded bool
	}{
		{"another one runs there, and a node is free", []client.Object{node("n1", true), node("n2", true), node("n3", true)}, map[string]string{"n1": "etcd-1", "n2": "etcd-2"}, true},
		{"no node is free", []client.Object{node("n1", true), node("n2", true)}, map[string]string{"n1": "etcd-1", "n2": "etcd-2"}, false},
		{"no one runs there", []client.Object{node("n1", true), node("n2", true), node("n3", true)}, map[string]string{"n2": "etcd-2"}, false},
		{"the free node is cordoned", []client.Object{node("n1", true), node("n2", true), cordoned}, map[string]string{"n1": "etcd-1", "n2": "etcd-2"}, false},
		{"the free node is not ready", []client.Object{node("n1", true), node("n2", true), node("n3", false)}, map[string]string{"n1": "etcd-1", "n2": "etcd-2"}, false},
		{"the free node is not for members", []client.Object{node("n1", true), node("n2", true), node("n3", true, corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule})}, map[string]string{"n1": "etcd-1", "n2": "etcd-2"}, false},
		{"its node was deleted", []client.Object{node("n2", true), node("n3", true)}, map[string]string{"n2": "etcd-2"}, false},
	} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}}}}
		host := operandtest.Host(t, append(test.nodes, pv)...)
		why, err := Crowded(t.Context(), host.Live, &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}, operatorv1alpha1.Pods{}, test.others)
		if (why != "") != test.crowded || err != nil || test.crowded && why != "its volume pv can be used on n1 only, where etcd-1 runs, and members are spread over nodes" {
			t.Errorf("%s: %q, %v", test.reason, why, err)
		}
	}
}

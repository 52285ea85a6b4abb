package members

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestSpreadNoted says which members share a node, what that means for etcd, and the command
// that moves one: nothing where each has a node of its own, or the spec spreads them.
func TestSpreadNoted(t *testing.T) {
	for _, test := range []struct {
		reason string
		on     []string // the members' nodes
		change func(*managed)
		says   []string // nothing when empty
	}{
		{"each has its own", []string{"a", "b", "c"}, nil, nil},
		{"one has no node yet", []string{"a", "b", ""}, nil, nil},
		{"two share one, and one is free", []string{"a", "b", "a"}, nil, []string{"fleet-etcd-0 and fleet-etcd-2 share node a: if it fails, etcd loses its majority", "a node of its own (c)", "kubectl registry etcd replace -n team fleet-etcd-2"}},
		{"two of five share one", []string{"a", "b", "a", "c", "d"}, nil, []string{"fleet-etcd-0 and fleet-etcd-2 share node a: if it fails, 3 of 5 members are left", "Add a node that etcd members may run on"}},
		{"none is free", []string{"a", "a", "b"}, func(m *managed) { m.Registry.Spec.Etcd.NodeSelector = map[string]string{"disk": "fast"} }, []string{"Add a node that etcd members may run on, and then move a member there: kubectl registry etcd replace -n team fleet-etcd-1"}},
		{"the spec spreads them", []string{"a", "a", "a"}, func(m *managed) {
			m.Registry.Spec.Etcd.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}}
		}, nil},
		{"it goes", []string{"a", "b", "a"}, func(m *managed) { m.pods[2].DeletionTimestamp = &metav1.Time{Time: m.Now} }, nil},
	} {
		m := newManaged(t, len(test.on))
		for _, name := range []string{"a", "b", "c", "d"} {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
			if name == "d" {
				node.Status.Conditions[0].Status = corev1.ConditionUnknown
			}
			if err := m.Client.Create(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		}
		var pods []corev1.Pod
		for i, node := range test.on {
			m.pods[i].Spec.NodeName = node
		}
		if test.change != nil {
			test.change(m)
		}
		for _, pod := range m.pods {
			pods = append(pods, *pod)
		}
		v := m.spreadNoted(t.Context(), done, pods)
		if !v.Complete() || (v.Reason == operatorv1alpha1.ReasonMembersShareNode) != (len(test.says) > 0) {
			t.Errorf("%s: %+v", test.reason, v)
		}
		for _, words := range test.says {
			if !strings.Contains(v.Message, words) {
				t.Errorf("%s: it says %q, want %q", test.reason, v.Message, words)
			}
		}
	}
}

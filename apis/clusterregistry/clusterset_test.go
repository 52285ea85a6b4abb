package clusterregistry

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLabel keeps the label of a set, and changes no map that another may share.
func TestLabel(t *testing.T) {
	for _, test := range []struct {
		set        string
		said, want map[string]string
	}{
		{"", nil, nil},
		{"", map[string]string{ClusterSetLabel: "green"}, nil},
		{"", map[string]string{ClusterSetLabel: "", "a": "b"}, map[string]string{"a": "b"}},
		{"blue", nil, map[string]string{ClusterSetLabel: "blue"}},
		{"blue", map[string]string{ClusterSetLabel: "green", "a": "b"}, map[string]string{ClusterSetLabel: "blue", "a": "b"}},
		{"blue", map[string]string{ClusterSetLabel: "blue"}, map[string]string{ClusterSetLabel: "blue"}},
	} {
		before := maps.Clone(test.said)
		c := &Cluster{ObjectMeta: metav1.ObjectMeta{Labels: test.said}, Spec: ClusterSpec{ClusterSet: test.set}}
		c.Label()
		if !maps.Equal(c.Labels, test.want) || (c.Labels == nil) != (test.want == nil) {
			t.Errorf("in %q, labelled %v: got %v, want %v", test.set, test.said, c.Labels, test.want)
		}
		if !maps.Equal(before, test.said) {
			t.Errorf("%v was changed to %v", before, test.said)
		}
	}
}

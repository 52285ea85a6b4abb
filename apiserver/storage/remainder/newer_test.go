package remainder

import (
	"bytes"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// TestSetsSurviveV030 lets a server of v0.3.0 write a cluster that is in a set, as after a
// rollback or while an upgrade is under way. It shows the label, and lets clients change it.
func TestSetsSurviveV030(t *testing.T) {
	for _, test := range []struct {
		reason, set string
		change      func(*v1beta1.Cluster)
	}{
		{"no change", "blue", func(*v1beta1.Cluster) {}},
		{"another name", "blue", func(c *v1beta1.Cluster) { c.Spec.DisplayName = "East" }},
		{"another label", "blue", func(c *v1beta1.Cluster) { c.Labels = map[string]string{clusterregistry.ClusterSetLabel: "green"} }},
		{"no label", "blue", func(c *v1beta1.Cluster) { c.Labels = nil }},
		{"a label without a set", "", func(c *v1beta1.Cluster) { c.Labels = map[string]string{clusterregistry.ClusterSetLabel: "green"} }},
	} {
		made := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterregistry.ClusterSpec{ClusterSet: test.set}}
		made.Label()
		data, err := runtime.Encode(storage, made)
		if err != nil {
			t.Fatal(err)
		}
		written := asV030(t, data, func(c *v1beta1.Cluster) {
			if c.Spec.ClusterSet != "" {
				t.Errorf("%s: stored in a field that v0.3.0 drops", test.reason)
			}
			test.change(c)
		})
		if test.reason == "no change" && !bytes.Equal(written, data) {
			t.Errorf("v0.3.0 writes it in other bytes:\n%q\n%q", data, written)
		}
		got := &clusterregistry.Cluster{}
		if err := runtime.DecodeInto(storage, written, got); err != nil {
			t.Fatal(err)
		}
		if got.Spec.ClusterSet != test.set || got.Labels[clusterregistry.ClusterSetLabel] != test.set {
			t.Errorf("%s: in %q, labelled %v", test.reason, got.Spec.ClusterSet, got.Labels)
		}
	}
}

package transfer

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// TestGenerationsOfAnotherObject takes a status to another registry: what was observed of the
// spec as it is is of the new object's generation there, and what was of another spec, or may
// have been, is not taken along. A condition of a later generation would stay True however
// the endpoint changes.
func TestGenerationsOfAnotherObject(t *testing.T) {
	reported := func(generation, observed int64) *v1beta1.Cluster {
		c := some("east", "one")
		c.Generation = generation
		verified := metav1.Condition{Type: v1beta1.ConditionIdentityVerified, Status: metav1.ConditionTrue, Reason: "Joined", ObservedGeneration: observed, LastTransitionTime: metav1.Unix(1, 0)}
		c.Status = &v1beta1.ClusterStatus{ObservedGeneration: observed, Conditions: []metav1.Condition{verified}, Reporters: []v1beta1.Reporter{{Name: "agent", Conditions: []metav1.Condition{verified}}}}
		return c
	}
	for _, test := range []struct {
		reason, file string
		kept         bool
	}{
		{"an export", export(t, commandtest.New(t, reported(7, 7)), "--with-status"), true},
		{"an export of what is outdated", export(t, commandtest.New(t, reported(7, 3)), "--with-status"), false},
		{"what kubectl has read", `{apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: east, generation: 7}, spec: {id: one}, status: {observedGeneration: 7, conditions: [{type: IdentityVerified, status: "True", reason: Joined, message: "", observedGeneration: 7, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, true},
		{"what kubectl has read, outdated", `{apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: east, generation: 7}, spec: {id: one}, status: {observedGeneration: 6, conditions: [{type: IdentityVerified, status: "True", reason: Joined, message: "", observedGeneration: 6, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, false},
		{"without its generation", `{apiVersion: clusterregistry.k8s.io/v1beta1, kind: Cluster, metadata: {name: east}, spec: {id: one}, status: {observedGeneration: 7, conditions: [{type: IdentityVerified, status: "True", reason: Joined, message: "", observedGeneration: 7, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, false},
	} {
		there := some("east", "one")
		there.Generation, there.Status = 2, nil
		there.Spec.DisplayName = "another"
		env := commandtest.New(t, there)
		env.Stdin.WriteString(test.file)
		if text, code := env.Run(t, NewImport(env.Env), "-f", "-", "--with-status", "--overwrite"); code != 0 {
			t.Fatalf("%s: %s\n%s", test.reason, text, env.Stdout)
		}
		made, err := env.Clusters.ClusterregistryV1beta1().Clusters().Get(t.Context(), "east", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lists := [][]metav1.Condition{made.Status.Conditions}
		for _, reporter := range made.Status.Reporters {
			lists = append(lists, reporter.Conditions)
		}
		for _, conditions := range lists {
			c := meta.FindStatusCondition(conditions, v1beta1.ConditionIdentityVerified)
			if (c != nil) != test.kept || c != nil && c.ObservedGeneration != made.Generation {
				t.Errorf("%s: of generation %d it has %+v", test.reason, made.Generation, c)
			}
		}
		if strings.HasPrefix(test.reason, "an export") && strings.Contains(test.file, "observedGeneration") {
			t.Errorf("%s has the generations of its object:\n%s", test.reason, test.file)
		}
	}
}

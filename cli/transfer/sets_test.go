package transfer

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// inSet returns a cluster in a set, as a server shows it.
func inSet(name, id, set string) *v1beta1.Cluster {
	out := some(name, id)
	out.Spec.ClusterSet, out.Labels[v1beta1.ClusterSetLabel] = set, set
	return out
}

func set(name, description string) *v1beta1.ClusterSet {
	return &v1beta1.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "5", Annotations: map[string]string{lastApplied: "{}"}},
		Spec:       v1beta1.ClusterSetSpec{Description: description}, Status: v1beta1.ClusterSetStatus{Clusters: 7},
	}
}

// TestRoundTripOfSets expects the sets of the clusters that are exported, before them, and that
// both are the same elsewhere.
func TestRoundTripOfSets(t *testing.T) {
	source := commandtest.New(t, set("blue", "of the team"), set("empty", ""), inSet("east", "one", "blue"), some("west", "two"))
	before := export(t, source)
	if strings.Count(before, "kind: ClusterSet") != 1 || strings.Index(before, "kind: ClusterSet") > strings.Index(before, "kind: Cluster\n") || strings.Contains(before, "resourceVersion") || strings.Contains(before, v1beta1.ClusterSetLabel) || strings.Contains(before, "clusters: 7") {
		t.Errorf("it exports\n%s", before)
	}
	target := commandtest.New(t)
	for _, want := range []string{created, same} {
		target.Stdout.Reset()
		target.Stdin.WriteString(before)
		text, code := target.Run(t, NewImport(target.Env), "-f", "-", "-o", "json")
		var results []Result
		if err := json.Unmarshal(target.Stdout.Bytes(), &results); code != 0 || err != nil || len(results) != 3 || results[0].From != "ClusterSet blue" {
			t.Fatalf("%s%s, %v", text, target.Stdout, err)
		}
		for _, result := range results {
			if result.Result != want {
				t.Errorf("%+v, want %s", result, want)
			}
		}
		if text := target.Stderr.String(); !strings.Contains(text, "Entering 1 ClusterSet and 2 clusters in the registry") {
			t.Errorf("it says %s", text)
		}
	}
	if after := export(t, target); after != before {
		t.Errorf("it comes out as\n%s\nand not as\n%s", after, before)
	}
}

// TestImportOfSets enters sets first wherever they are in the file, and leaves those that differ.
func TestImportOfSets(t *testing.T) {
	const file = `
{"apiVersion": "clusterregistry.k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "east"}, "spec": {"clusterSet": "blue"}}
{"apiVersion": "clusterregistry.k8s.io/v1beta1", "kind": "ClusterSet", "metadata": {"name": "blue"}, "spec": {"description": "another"}}
{"apiVersion": "clusterregistry.k8s.io/v1beta1", "kind": "ClusterSet", "metadata": {"name": "odd"}, "spec": {"colour": "blue"}}
{"apiVersion": "clusterregistry.k8s.io/v1", "kind": "ClusterSet", "metadata": {"name": "new"}}`
	for flags, want := range map[string]string{"": differs, "--overwrite": updated, "--overwrite --dry-run=client": updated} {
		env := commandtest.New(t, set("blue", "of the team"))
		env.Stdin.WriteString(file)
		text, code := env.Run(t, NewImport(env.Env), append([]string{"-f", "-", "-o", "json"}, strings.Fields(flags)...)...)
		var results []Result
		if err := json.Unmarshal(env.Stdout.Bytes(), &results); code != 4 || err != nil || len(results) != 4 {
			t.Fatalf("%s: %s%s, %v", flags, text, env.Stdout, err)
		}
		if got := results[0]; got.From != "ClusterSet blue" || got.Result != want || (want == differs) != strings.Contains(got.Message, "kubectl get crset blue -o yaml") {
			t.Errorf("%s: %+v", flags, got)
		}
		if got := results[1]; got.Result != refused || !strings.Contains(got.Message, `unknown field "spec.colour"`) {
			t.Errorf("%s: %+v", flags, got)
		}
		if got := results[2]; got.From != "Cluster east" || got.Result != created {
			t.Errorf("%s: %+v", flags, got)
		}
		if got := results[3]; got.Result != refused || !strings.Contains(got.Message, `ClusterSet of "clusterregistry.k8s.io/v1" is not a form that import reads`) {
			t.Errorf("%s: %+v", flags, got)
		}
		stored, err := env.Clusters.ClusterregistryV1beta1().ClusterSets().Get(t.Context(), "blue", metav1.GetOptions{})
		if err != nil || (stored.Spec.Description == "another") != (flags == "--overwrite") {
			t.Errorf("%s: the set is %+v, %v", flags, stored, err)
		}
	}
}

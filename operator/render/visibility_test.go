package render

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestVisibility renders the same servers whether or not the spec says that all is shown, and
// what the operator has decided whatever the spec says.
func TestVisibility(t *testing.T) {
	with := func(spec string, decided operatorv1alpha1.Visibility) *Result {
		in := input(t, merged(t, spec))
		in.Visibility = decided
		return rendered(t, in)
	}
	hides := func(r *Result) bool {
		for _, object := range r.Stages[StageServer] {
			if object.GetKind() != "Deployment" {
				continue
			}
			servers := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, servers); err != nil {
				t.Fatal(err)
			}
			return HidesClusters(servers)
		}
		t.Fatal("there are no servers")
		return false
	}
	const all, sets = operatorv1alpha1.VisibilityAll, operatorv1alpha1.VisibilityClusterSets
	if !reflect.DeepEqual(with(`{}`, ""), with(`{server: {authorization: {visibility: All}}}`, "")) {
		t.Error("All renders something else than nothing")
	}
	for _, test := range []struct {
		spec    string
		decided operatorv1alpha1.Visibility
		want    bool
	}{
		{`{}`, "", false}, {`{}`, all, false}, {`{}`, sets, true},
		{`{server: {authorization: {visibility: ClusterSets}}}`, "", true}, {`{server: {authorization: {visibility: ClusterSets}}}`, all, false},
	} {
		if got := hides(with(test.spec, test.decided)); got != test.want {
			t.Errorf("%s, decided %q: hides %t", test.spec, test.decided, got)
		}
	}
}

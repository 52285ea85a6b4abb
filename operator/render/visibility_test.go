package render

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestVisibilityNeedsALayout renders servers of the first layout, which don't know the flag,
// without it, the same servers whether or not the spec says that all is shown, and what the
// operator has decided whatever the spec says.
func TestVisibilityNeedsALayout(t *testing.T) {
	with := func(layout, spec string, decided operatorv1alpha1.Visibility) *Result {
		in := input(t, merged(t, spec))
		in.Release.Layout, in.Release.EtcdLayout, in.Release.Controllers, in.Visibility = layout, layout, nil, decided
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
	for _, layout := range []string{"v1", "v2"} {
		unset := with(layout, `{}`, "")
		if shown := with(layout, `{server: {authorization: {visibility: All}}}`, ""); !reflect.DeepEqual(unset, shown) {
			t.Errorf("%s: All renders something else than nothing", layout)
		}
		for _, test := range []struct {
			spec    string
			decided operatorv1alpha1.Visibility
			want    bool
		}{
			{`{}`, "", false}, {`{}`, all, false}, {`{}`, sets, true},
			{`{server: {authorization: {visibility: ClusterSets}}}`, "", true}, {`{server: {authorization: {visibility: ClusterSets}}}`, all, false},
		} {
			if got := hides(with(layout, test.spec, test.decided)); got != (test.want && layout == "v2") {
				t.Errorf("%s: %s, decided %q: hides %t", layout, test.spec, test.decided, got)
			}
		}
	}
}

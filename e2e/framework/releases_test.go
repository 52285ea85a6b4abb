package framework

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework/needs"
	"github.com/clusterregistry/operator/operator/version"
)

// TestHeld writes registries of the oldest and the newest release through the client
// of a package that says that it runs the newest.
func TestHeld(t *testing.T) {
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	oldest, newest := releases[0].Version, releases[len(releases)-1].Version
	n, err := needs.Of(releases, "newest")
	if err != nil {
		t.Fatal(err)
	}
	c := held(fake.NewClientBuilder().WithScheme(newScheme(t)).Build(), n)
	registry := func(name, release string) *operatorv1alpha1.ClusterRegistry {
		r := &operatorv1alpha1.ClusterRegistry{}
		r.Namespace, r.Name, r.Spec.Version = "default", name, operatorv1alpha1.Version(release)
		return r
	}
	fine := registry("fine", newest)
	says := "this test runs " + oldest + `, and the tests of its package say that they run "` + newest + `"`
	for _, test := range []struct {
		reason, says string
		write        func() error
	}{
		{"one that is declared", "", func() error { return c.Create(t.Context(), fine) }},
		{"one that no release is, which the operator refuses", "", func() error { return c.Create(t.Context(), registry("unknown", "v99.0.0")) }},
		{"one that is not declared", says, func() error { return c.Create(t.Context(), registry("older", oldest)) }},
		{"what the API refuses is not run", "already exists", func() error { return c.Create(t.Context(), registry("fine", oldest)) }},
		{"a patch", says, func() error {
			return c.Patch(t.Context(), fine, client.RawPatch(client.Merge.Type(), []byte(`{"spec":{"version":"`+oldest+`"}}`)))
		}},
		{"a change of something else", says, func() error { fine.Labels = map[string]string{"a": "b"}; return c.Update(t.Context(), fine) }},
		{"another object", "", func() error {
			return c.Delete(t.Context(), registry("older", oldest))
		}},
	} {
		if err := test.write(); (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

// TestBuilt compares what a package runs with what was built last.
func TestBuilt(t *testing.T) {
	release := version.Release{Version: "v0.2.0", Helper: "v0.1.0", Etcd: "v3.6.14"}
	n, err := needs.Of([]version.Release{release}, "newest")
	if err != nil {
		t.Fatal(err)
	}
	built := []Image{{Name: "etcd", Tag: "v3.6.14"}, {Name: "clusterregistry-apiserver", Tag: "v0.2.0"}, {Name: "clusterregistry-controller", Tag: "v0.2.0"}, {Name: "clusterregistry-backup", Tag: "v0.2.0"}, {Name: "clusterregistry-helper", Tag: "v0.2.0"}}
	if err := checkBuilt(n, built); err == nil || !strings.Contains(err.Error(), "needs the image clusterregistry-helper:v0.1.0, which was not among") {
		t.Errorf("without the helper: %v", err)
	}
	if err := checkBuilt(n, append(built, Image{Name: "clusterregistry-helper", Tag: "v0.1.0"})); err != nil {
		t.Error(err)
	}
}

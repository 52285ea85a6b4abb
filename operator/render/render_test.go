package render

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

var update = flag.Bool("update", false, "write what is rendered to testdata")

// input returns the input of a test: a registry, changed by modify.
func input(t *testing.T, registry string, modify ...func(*operatorv1alpha1.ClusterRegistry)) Input {
	t.Helper()
	r := &operatorv1alpha1.ClusterRegistry{}
	if err := yaml.UnmarshalStrict([]byte(registry), r); err != nil {
		t.Fatal(err)
	}
	for _, m := range modify {
		m(r)
	}
	operatorv1alpha1.SetDefaults(r)
	return Input{
		Registry:    r,
		Release:     Release{Version: string(r.Spec.Version), Etcd: "v3.6.14", Serves: []string{"v1alpha1"}},
		HostVersion: "1.37",
		Trust:       Trust{Etcd: []byte("CA of etcd\n"), Serving: []byte("CA of the servers\n"), Clients: []byte("CA of the users\n")},
		Environment: Environment{ImageRepository: "ghcr.io/clusterregistry", Namespace: "clusterregistry-system", ClusterDomain: "cluster.local"},
	}
}

func samples(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../manifests/samples/*.yaml")
	if err != nil || len(paths) < 4 {
		t.Fatalf("samples %v, %v", paths, err)
	}
	return paths
}

func sample(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func rendered(t *testing.T, in Input) *Result {
	t.Helper()
	result, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestGolden compares what each sample becomes with testdata. "make
// update-golden" writes it anew.
func TestGolden(t *testing.T) {
	for _, path := range samples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var got bytes.Buffer
			for _, object := range rendered(t, input(t, sample(t, path))).Objects() {
				content, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString("---\n" + string(content))
			}
			golden := filepath.Join("testdata", filepath.Base(path))
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := firstDifference(string(want), got.String()); diff != "" {
				t.Errorf("%s differs from what is rendered; \"make update-golden\" writes it anew:\n%s", golden, diff)
			}
		})
	}
}

// firstDifference returns the lines where two texts begin to differ.
func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		var a, b string
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return "want: " + a + "\ngot:  " + b
		}
	}
	return ""
}

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
	"github.com/clusterregistry/operator/operator/version"
)

var update = flag.Bool("update", false, "write what is rendered to testdata")

// newest returns the last release, in whose layout tests render. Goldens hold the
// layouts of those before to what they were.
func newest(t *testing.T) version.Release {
	t.Helper()
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	return releases[len(releases)-1]
}

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
	layout := newest(t).Layout
	return Input{
		Registry:    r,
		Release:     Release{Version: string(r.Spec.Version), Helper: string(r.Spec.Version), Etcd: "v3.6.14", Layout: layout, EtcdLayout: layout, Serves: []string{"v1alpha1"}},
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

// TestSamples has what users start from ask for the newest release.
func TestSamples(t *testing.T) {
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	newest := releases[len(releases)-1].Version
	for _, path := range samples(t) {
		var registry operatorv1alpha1.ClusterRegistry
		if err := yaml.UnmarshalStrict([]byte(sample(t, path)), &registry); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if string(registry.Spec.Version) != newest {
			t.Errorf("%s asks for %s, want the newest release, %s", path, registry.Spec.Version, newest)
		}
	}
}

// TestGolden compares what each sample becomes, in each release, with testdata.
// "make update-golden" writes it anew; of a release that is released, "make
// verify-releases" refuses that.
func TestGolden(t *testing.T) {
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range releases {
		for _, path := range samples(t) {
			t.Run(release.Version+"/"+filepath.Base(path), func(t *testing.T) {
				golden := filepath.Join("testdata", release.Version, filepath.Base(path))
				compare(t, golden, inYAML(t, rendered(t, inputOf(t, release, path))))
			})
		}
	}
}

// inputOf returns the input of a sample in a release, when a snapshot is taken.
func inputOf(t *testing.T, release version.Release, path string) Input {
	t.Helper()
	in := input(t, sample(t, path), func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Version = operatorv1alpha1.Version(release.Version) })
	in.Release = Release{Version: release.Version, Helper: release.Helper, Etcd: release.Etcd, Layout: release.Layout, EtcdLayout: release.Layout, Serves: release.Serves}
	if in.Registry.Spec.Etcd.External == nil {
		in.Snapshot = "before-the-next"
	}
	return in
}

func inYAML(t *testing.T, result *Result) string {
	t.Helper()
	var out bytes.Buffer
	for _, object := range result.Objects() {
		content, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(content))
	}
	return out.String()
}

// compare compares a text with a file, or writes it there when that is asked for.
func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := firstDifference(string(want), got); diff != "" {
		t.Errorf("%s differs from what is rendered; \"make update-golden\" writes it anew:\n%s", golden, diff)
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

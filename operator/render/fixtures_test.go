package render

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// fixturesDirectory has the registries that the goldens are of. They are not what
// users read, so that manifests/samples can change, and never change themselves
// once a release is released: what they become is frozen then.
const fixturesDirectory = "testdata/fixtures"

// fixtures returns the names of all fixtures.
func fixtures(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(fixturesDirectory + "/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatalf("fixtures %v, %v", paths, err)
	}
	for i, path := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(path), ".yaml")
	}
	return paths
}

// read returns what a fixture says.
func read(t testing.TB, fixture string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(fixturesDirectory, fixture+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestSamples renders what users start from, which asks for the newest release.
func TestSamples(t *testing.T) {
	samples, err := filepath.Glob("../../manifests/samples/*.yaml")
	if err != nil || len(samples) < 4 {
		t.Fatalf("samples %v, %v", samples, err)
	}
	for _, path := range samples {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		in := input(t, string(content))
		if version := string(in.Registry.Spec.Version); version != newest(t).Version {
			t.Errorf("%s asks for %s, want the newest release, %s", path, version, newest(t).Version)
		}
		if result := rendered(t, in); len(result.Stages[StageServer]) == 0 {
			t.Errorf("%s brings about no servers", path)
		}
	}
}

// TestFixturesLeaveNothingOut expects each field of a spec and each component of a
// layout in one fixture at least: what is in none is not frozen.
func TestFixturesLeaveNothingOut(t *testing.T) {
	set, used := map[string]bool{}, map[string]bool{}
	for _, fixture := range fixtures(t) {
		registry := &operatorv1alpha1.ClusterRegistry{}
		if err := yaml.UnmarshalStrict([]byte(read(t, fixture)), registry); err != nil {
			t.Fatalf("%s: %v", fixture, err)
		}
		if registry.Spec.Version != "" {
			t.Errorf("%s asks for %s, and is rendered in each release", fixture, registry.Spec.Version)
		}
		fieldsSet("spec", reflect.ValueOf(registry.Spec), set)
		for _, component := range components(inputOf(t, newest(t), fixture), newest(t).Layout) {
			used[filepath.Base(component)] = true
		}
	}
	for path, is := range set {
		if !is && path != "spec.version" {
			t.Errorf("%s is in no fixture", path)
		}
	}
	if len(set) < 50 {
		t.Errorf("only %d fields were found", len(set))
	}
	for _, release := range allReleases(t) {
		directories, err := os.ReadDir(filepath.Join("../../manifests", root, release.Layout, "components"))
		if err != nil {
			t.Fatal(err)
		}
		for _, directory := range directories {
			if !used[directory.Name()] {
				t.Errorf("component %s of layout %s is used by no fixture", directory.Name(), release.Layout)
			}
		}
	}
}

// fieldsSet finds the fields of a value, and of those within that are of the API's
// own types, and notes by their paths whether they are set.
func fieldsSet(path string, value reflect.Value, set map[string]bool) {
	for value.Kind() == reflect.Pointer {
		if value.IsNil() {
			value = reflect.Zero(value.Type().Elem())
		} else {
			value = value.Elem()
		}
	}
	if value.Kind() != reflect.Struct || value.Type().PkgPath() != reflect.TypeFor[operatorv1alpha1.ClusterRegistry]().PkgPath() {
		return
	}
	for i := range value.NumField() {
		field := value.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			fieldsSet(path, value.Field(i), set)
			continue
		}
		at := path + "." + name
		set[at] = set[at] || !value.Field(i).IsZero()
		fieldsSet(at, value.Field(i), set)
	}
}

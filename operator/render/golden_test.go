package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/dirhash"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/manifests"
	"github.com/clusterregistry/operator/operator/version"
)

const (
	// digestsFile has the digest of each layout, and of what each release makes of
	// each fixture. hack/release compares it with what it was at a release.
	digestsFile = "testdata/digests.yaml"
	// goldens has what the newest release makes of each fixture, to be read.
	goldens = "testdata/newest"
)

var (
	update = flag.Bool("update", false, "write the digests, and what the newest release renders, to testdata")
	into   = flag.String("into", "", "a directory into which all that was rendered is written as YAML, to compare two states of the source")
)

// TestGolden compares what each release makes of each fixture, and each layout,
// with their recorded digests. "make update-golden" records them, unless the change
// is one of a release that is released.
func TestGolden(t *testing.T) {
	releases := allReleases(t)
	now, texts := version.Digests{Layouts: layoutDigests(t, manifests.Registry), Renders: map[string]map[string]string{}}, map[string]map[string]string{}
	for _, release := range releases {
		now.Renders[release.Version], texts[release.Version] = map[string]string{}, map[string]string{}
		for _, fixture := range fixtures(t) {
			result := rendered(t, inputOf(t, release, fixture))
			now.Renders[release.Version][fixture], texts[release.Version][fixture] = digestOf(t, result), inYAML(t, result)
		}
	}
	if *into != "" {
		for release, of := range texts {
			writeTexts(t, filepath.Join(*into, release), of)
		}
	}
	newest := releases[len(releases)-1].Version
	if *update {
		if err := record(digestsFile, now, releases); err != nil {
			t.Fatalf("nothing was written:\n%v", err)
		}
		if err := os.RemoveAll(goldens); err != nil {
			t.Fatal(err)
		}
		writeTexts(t, goldens, texts[newest])
	}
	recorded, err := readDigests(digestsFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := recorded.CheckFrozen(now, releases); err != nil {
		t.Error(err)
	}
	for _, difference := range differences(recorded, now) {
		t.Errorf("%s differs from %s: if no release that is released has changed, and the change is meant, run \"make update-golden\"; to see it, run \"go test ./operator/render -run TestGolden -into DIRECTORY\" before and after, and compare", difference, digestsFile)
	}
	compareTexts(t, texts[newest])
}

// layoutDigests returns a digest of each layout's files, by its name.
func layoutDigests(t *testing.T, tree fs.FS) map[string]string {
	t.Helper()
	layouts, err := fs.ReadDir(tree, root)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, layout := range layouts {
		var files []string
		err := fs.WalkDir(tree, root+"/"+layout.Name(), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		open := func(name string) (io.ReadCloser, error) { return tree.Open(name) }
		if out[layout.Name()], err = dirhash.Hash1(files, open); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// inputOf returns the input of a fixture in a release, when a snapshot is taken.
func inputOf(t testing.TB, release version.Release, fixture string) Input {
	t.Helper()
	in := input(t, read(t, fixture), func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Version = operatorv1alpha1.Version(release.Version) })
	in.Release = ReleaseOf(release)
	if in.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		in.Addresses = []string{"registry.example", "192.0.2.7"}
	}
	if in.Registry.Spec.Etcd.External == nil {
		in.Snapshot = "before-the-next"
	}
	in.Backup = backups[fixture]
	in.Restore = restored[fixture]
	return in
}

// restored are the backups that the registry of a fixture begins with: one that is looked up,
// and one that is restored.
var restored = map[string]*Restore{
	"every-field":       {Store: s3(), Source: "0b9c4b52", Before: "2026-03-01T03:00:00Z", Task: "show 0b9c4b52"},
	"aggregated-single": {Store: s3(), Source: "0b9c4b52", Name: "manual", SHA256: "e3b0c442", Lineage: "5f2c1a77"},
}

// backups are what is done about the backups of each fixture.
var backups = map[string]Backup{
	"every-field":       {Step: "save", Task: "save every-20260301-0300 1f0c", Name: "every-20260301-0300", UID: "1f0c", Lineage: "0b9c4b52", SkipUnchanged: true},
	"aggregated-ha":     {Step: "verify", Task: "verify manual 1f0c", Name: "manual", UID: "1f0c", Lineage: "0b9c4b52"},
	"aggregated-single": {Step: "prune", Task: "prune manual 1f0c", Name: "manual", UID: "1f0c", Lineage: "0b9c4b52"},
	"independent":       {Step: "delete", Task: "delete manual 1f0c", Name: "manual", UID: "1f0c", Lineage: "0b9c4b52"},
}

// digestOf returns the SHA-256 of objects in JSON, whose form no library of YAML
// changes.
func digestOf(t *testing.T, result *Result) string {
	t.Helper()
	content, err := json.Marshal(result.Objects())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
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

func readDigests(path string) (version.Digests, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return version.Digests{}, err
	}
	return version.ParseDigests(content)
}

// record writes digests to a file, unless one of a release that is released would
// change.
func record(path string, now version.Digests, releases []version.Release) error {
	was, err := readDigests(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := was.CheckFrozen(now, releases); err != nil {
		return err
	}
	content, err := yaml.Marshal(now)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte("# Written by \"make update-golden\", which changes nothing of a release that is released.\n"), content...), 0o644)
}

// differences names what two digests don't have in common.
func differences(recorded, now version.Digests) []string {
	flat := func(d version.Digests) map[string]string {
		out := map[string]string{}
		for layout, digest := range d.Layouts {
			out["layout "+layout] = digest
		}
		for release, renders := range d.Renders {
			for fixture, digest := range renders {
				out[fmt.Sprintf("what %s makes of fixture %s", release, fixture)] = digest
			}
		}
		return out
	}
	was, is := flat(recorded), flat(now)
	var names []string
	for name := range was {
		if is[name] != was[name] {
			names = append(names, name)
		}
	}
	for name := range is {
		if _, known := was[name]; !known {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func writeTexts(t *testing.T, directory string, texts map[string]string) {
	t.Helper()
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	for fixture, text := range texts {
		if err := os.WriteFile(filepath.Join(directory, fixture+".yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// compareTexts compares what the newest release renders with its goldens, which
// there are of all fixtures, and of nothing else.
func compareTexts(t *testing.T, texts map[string]string) {
	t.Helper()
	files, err := filepath.Glob(goldens + "/*")
	if err != nil || len(files) != len(texts) {
		t.Errorf("%s has %v, %v, and there are %d fixtures; \"make update-golden\" writes it anew", goldens, files, err, len(texts))
	}
	for fixture, got := range texts {
		golden := filepath.Join(goldens, fixture+".yaml")
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Error(err)
		} else if diff := firstDifference(string(want), got); diff != "" {
			t.Errorf("%s differs from what is rendered; \"make update-golden\" writes it anew:\n%s", golden, diff)
		}
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

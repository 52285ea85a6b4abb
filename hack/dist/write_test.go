package main

import (
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"

	"github.com/clusterregistry/operator/hack/product"
)

// smallSource writes the source of a small program, which prints its arguments, in a folder of its own.
func smallSource(t *testing.T) string {
	t.Helper()
	source := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.com/small\n\ngo 1.26.0\n", "main.go": "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() { fmt.Println(os.Args[1:]) }\n"} {
		if err := os.WriteFile(filepath.Join(source, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return source
}

// small compiles the source of a small program, in a folder of its own, as
// programs of this project are compiled.
func small(t *testing.T) compiled {
	t.Helper()
	source, out := smallSource(t), t.TempDir()
	stamp := product.Stamp{Version: "v0.2.0", Commit: "0123456789abcdef0123456789abcdef01234567", Date: "2026-11-20T01:02:03Z"}
	program := product.Program{Name: "clusterregistry-operator", Package: "."}
	dirs := map[string]string{}
	for _, arch := range architectures {
		dirs[arch] = filepath.Join(out, arch)
		if err := product.Build(t.Context(), source, dirs[arch], arch, stamp, program); err != nil {
			t.Fatal(err)
		}
	}
	image, err := ours(program, stamp, dirs)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// smallPlugin compiles that program as the plugin is.
func smallPlugin(t *testing.T, image compiled) plugin {
	t.Helper()
	stamp := product.Stamp{Version: image.tag, Commit: image.commit, Date: image.created.Format(time.RFC3339)}
	out, err := compilePlugin(t.Context(), smallSource(t), t.TempDir(), stamp, product.Program{Name: "kubectl-registry", Package: "."})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// parts are the artefacts but for the catalog, which needs opm, and opm takes
// minutes to build: "make catalog" makes it.
var parts = slices.DeleteFunc(slices.Clone(artefacts), func(a artefact) bool { return a.name == "the catalog" })

// smallRelease writes a release of that program and of one that is not ours.
func smallRelease(t *testing.T) string {
	t.Helper()
	image := small(t)
	other := image
	other.name, other.tag, other.commit, other.created = "etcd", "v3.6.14", "", time.Time{}
	r := release{repository: "registry.example/platform", source: "../..", images: []compiled{image, other}, plugin: smallPlugin(t, image)}
	dir := filepath.Join(t.TempDir(), "v0.2.0")
	if err := r.write(t.Context(), dir, parts); err != nil {
		t.Fatal(err)
	}
	return dir
}

// written has the files of a small release by name, which compiles for six platforms.
var written map[string]string

// smallFiles returns the files of a small release; it is written once.
func smallFiles(t *testing.T) map[string]string {
	t.Helper()
	if written == nil {
		written = files(t, smallRelease(t))
	}
	return written
}

// writeFiles writes files into a folder of their own, and returns it.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	source, dir := fstest.MapFS{}, t.TempDir()
	for name, content := range files {
		source[name] = &fstest.MapFile{Data: []byte(content), Mode: 0o600}
	}
	if err := os.CopyFS(dir, source); err != nil {
		t.Fatal(err)
	}
	return dir
}

// files returns the content of all files below a folder, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReproducible makes a release twice, of one source in two folders.
func TestReproducible(t *testing.T) {
	first, second := smallFiles(t), files(t, smallRelease(t))
	objects, err := filepath.Glob("../../bundle/manifests/*.yaml")
	if err != nil || len(objects) == 0 {
		t.Fatal(objects, err)
	}
	if want := 29 + len(objects); len(first) != want || len(second) != want {
		t.Errorf("there are %d and %d files, want %d: 2 images, the bundle with %d objects and its metadata and image, 6 archives and 4 packages of the plugin with the manifest for krew, 10 lists of materials, images.txt, install.yaml, the chart and the sums", len(first), len(second), want, len(objects))
	}
	for name, content := range first {
		if second[name] != content {
			t.Errorf("%s differs", name)
		}
	}
}

func TestContent(t *testing.T) {
	release := smallFiles(t)
	dir := writeFiles(t, release)
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", sumsFile)
	check.Dir = dir
	out, err := check.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for name := range release {
		if name != sumsFile && !strings.Contains(string(out), name+": OK\n") {
			t.Errorf("%s has no sum", name)
		}
	}
	lines := strings.Split(strings.TrimSpace(release["images.txt"]), "\n")
	for i, reference := range []string{"registry.example/platform/clusterregistry-operator:v0.2.0", "registry.example/platform/etcd:v3.6.14"} {
		name, digest, _ := strings.Cut(lines[i], "@sha256:")
		archive := "images/" + strings.ReplaceAll(filepath.Base(reference), ":", "-") + ".tar"
		if name != reference || len(digest) != 64 || !strings.Contains(release[archive], "blobs/sha256/"+digest) {
			t.Errorf("images.txt has %q, want %s and the digest of what is in %s", lines[i], reference, archive)
		}
	}
	for _, text := range []string{
		"image: registry.example/platform/clusterregistry-operator:v0.2.0\n",
		"- name: IMAGE_REPOSITORY\n          value: registry.example/platform\n",
		"kind: CustomResourceDefinition\n",
		strings.TrimPrefix(lines[0], "registry.example/platform/clusterregistry-operator:v0.2.0@"),
	} {
		if !strings.Contains(release["install.yaml"], text) {
			t.Errorf("install.yaml lacks %q", text)
		}
	}
	chart := unpacked(t, release["cluster-registry-operator-0.2.0.tgz"])
	_, digest, _ := strings.Cut(lines[0], "@")
	for _, text := range []string{"\nversion: 0.2.0\n", "\nappVersion: v0.2.0\n", "  repository: registry.example/platform/clusterregistry-operator\n", "  digest: " + digest + "\n", "  imageRepository: registry.example/platform\n"} {
		if !strings.Contains(chart, text) {
			t.Errorf("the chart lacks %q", text)
		}
	}
	csv := release["bundle/manifests/clusterregistry-operator.clusterserviceversion.yaml"]
	operator := strings.Replace(lines[0], ":v0.2.0@", "@", 1)
	for _, text := range []string{"image: " + operator, "containerImage: " + operator, `createdAt: "2026-11-20T01:02:03Z"`} {
		if !strings.Contains(csv, text) {
			t.Errorf("the bundle lacks %q", text)
		}
	}
	if strings.Contains(csv, "/clusterregistry-operator:v0.2.0") {
		t.Error("the bundle names the operator's image by its tag")
	}
}

// unpacked returns the content of a compressed archive, as one text.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestFailureLeavesNothing also stands for a full disk.
func TestFailureLeavesNothing(t *testing.T) {
	image := small(t)
	image.programs = append(image.programs, "absent")
	place := t.TempDir()
	r := release{repository: "registry.example/platform", source: "../..", images: []compiled{image}}
	if err := r.write(t.Context(), filepath.Join(place, "v0.2.0"), parts); err == nil || !strings.Contains(err.Error(), "write the images") {
		t.Errorf("without a program: %v", err)
	}
	if left := files(t, place); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}

// TestPublished makes the next release, which takes etcd over as it was.
func TestPublished(t *testing.T) {
	before := writeFiles(t, smallFiles(t))
	next := func() (release, string) {
		earlier, err := readPublished(before)
		if err != nil {
			t.Fatal(err)
		}
		r := release{repository: "registry.example/platform", source: "../..", published: earlier, images: []compiled{small(t)}}
		r.images[0].tag = "v0.3.0"
		other, err := r.etcd(t.Context(), "v3.6.14")
		if err != nil {
			t.Fatal(err)
		}
		// The small release has but one program in the image of this name.
		other.programs = r.images[0].programs
		r.images = append(r.images, other)
		return r, filepath.Join(t.TempDir(), "v0.3.0")
	}
	r, dir := next()
	if err := r.write(t.Context(), dir, parts); err != nil {
		t.Fatal(err)
	}
	was, is := files(t, before), files(t, dir)
	for _, name := range []string{"images/etcd-v3.6.14.tar", "sbom/clusterregistry-operator-v3.6.14-linux-arm64.spdx.json"} {
		if is[name] != was[name] || is[name] == "" {
			t.Errorf("%s is not as it was", name)
		}
	}
	if lines := strings.SplitAfter(was["images.txt"], "\n"); !strings.HasSuffix(is["images.txt"], lines[1]) {
		t.Errorf("the images were %s and are %s", was["images.txt"], is["images.txt"])
	}
	if err := os.WriteFile(filepath.Join(before, "images", "etcd-v3.6.14.tar"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, dir = next()
	if err := r.write(t.Context(), dir, parts); err == nil || !strings.Contains(err.Error(), "get the release anew") {
		t.Errorf("with a damaged file: %v", err)
	}
}

// TestRecorded makes images that the table has recorded, and others.
func TestRecorded(t *testing.T) {
	image := small(t)
	r := release{repository: "registry.example/platform"}
	digests := map[string]string{}
	if err := r.addDigests(t.Context(), []compiled{image}, digests); err != nil || len(digests) != 1 {
		t.Fatalf("%v, %v", digests, err)
	}
	write := func(digests map[string]string, repository string, rehearse bool) error {
		r := release{repository: repository, images: []compiled{image}, recorded: digests, rehearse: rehearse}
		return writeImages(t.Context(), &r, t.TempDir())
	}
	if err := write(digests, "registry.example/platform", false); err != nil {
		t.Error(err)
	}
	if err := write(digests, "registry.example:5000/elsewhere", false); err != nil {
		t.Errorf("for another repository: %v", err)
	}
	if err := write(map[string]string{"etcd:v3.6.14": "sha256:of another"}, "registry.example/platform", false); err != nil {
		t.Errorf("another image is recorded: %v", err)
	}
	digests["clusterregistry-operator:v0.2.0"] = "sha256:another"
	err := write(digests, "registry.example/platform", false)
	if err == nil || !strings.Contains(err.Error(), "image clusterregistry-operator:v0.2.0 has the digest sha256:") || !strings.Contains(err.Error(), "releases.yaml has sha256:another") {
		t.Errorf("another digest is recorded: %v", err)
	}
	if err := write(digests, "registry.example/platform", true); err != nil {
		t.Errorf("in a rehearsal: %v", err)
	}
}

// TestMaterials describes this very test, which is linked from many modules.
func TestMaterials(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	document, err := materials("test-v0.2.0-linux-amd64", path, "/usr/local/bin/test", compiled{tag: "v0.2.0", commit: "0123", created: time.Unix(1e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := spdxjson.Write(document, &text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"spdxVersion":"SPDX-2.3"`, `"dataLicense":"CC0-1.0"`, `"SPDXID":"SPDXRef-DOCUMENT"`, `"created":"2001-09-09T01:46:40Z"`,
		`"name":"github.com/spdx/tools-golang"`, `"referenceLocator":"pkg:golang/github.com/spdx/tools-golang@v0.5.5"`, `"sourceInfo":"go.sum: h1:61c0KLfAcNqAjlg6UNMdkwpMernhw3zVRwDZ2x9XOmk="`,
		`"referenceLocator":"pkg:golang/github.com/clusterregistry/operator@v0.2.0"`, // which a directory replaces here
		`{"spdxElementId":"SPDXRef-DOCUMENT","relatedSpdxElement":"SPDXRef-program","relationshipType":"DESCRIBES"}`,
		`{"spdxElementId":"SPDXRef-program","relatedSpdxElement":"SPDXRef-go","relationshipType":"DEPENDS_ON"}`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s is missing in:\n%s", want, text.String())
		}
	}
	if _, err := spdxjson.Read(strings.NewReader(text.String())); err != nil {
		t.Errorf("the document can't be read: %v", err)
	}
}

package content

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// all returns the files of the chart of this checkout.
func all(t *testing.T) []File {
	t.Helper()
	files, err := Files(Options{Source: "../../.."})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestDiffer(t *testing.T) {
	files := all(t)
	if got := Differ(files, all(t)); len(got) > 0 {
		t.Errorf("the chart of one source is another one the second time, in %q", got)
	}
	changed := slices.Clone(files[1:])
	changed[0].Content = append(slices.Clone(changed[0].Content), '\n')
	changed = append(changed, File{Name: "templates/stray.yaml"})
	if got, want := Differ(changed, files), []string{files[0].Name, files[1].Name, "templates/stray.yaml"}; !slices.Equal(got, want) {
		t.Errorf("the files that differ are %q, want %q", got, want)
	}
}

// TestRead reads what is on disk in the form that Files returns.
func TestRead(t *testing.T) {
	there, err := Read("../../../" + Directory)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(there, func(f File) bool { return f.Name == "templates/deployment.yaml" && len(f.Content) > 0 }) {
		t.Errorf("%s has no deployment.yaml", Directory)
	}
	if there, err := Read("absent"); len(there) > 0 || err != nil {
		t.Errorf("of a directory that is not there: %v, %v", there, err)
	}
}

// TestMarks expects that no mark is left, and that an unknown one is an error.
func TestMarks(t *testing.T) {
	for _, f := range all(t) {
		for _, left := range []string{markPrefix, watchedNamespace} {
			if strings.Contains(string(f.Content), left) {
				t.Errorf("%s has %s", f.Name, left)
			}
		}
	}
	if text, err := fill("a:\n  - " + markPrefix + "nothing\n"); err == nil {
		t.Errorf("an unknown mark becomes %q", text)
	}
	text, err := fill("a:\n  " + markPrefix + "nodeSelector: null\nb: 1\n")
	if want := "a:\n  {{- with $.Values.nodeSelector }}\n  nodeSelector:\n    {{- toYaml . | nindent 4 }}\n  {{- end }}\nb: 1\n"; err != nil || text != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
}

func TestArchive(t *testing.T) {
	date := time.Unix(1700000000, 0)
	content, err := Archive([]File{{Name: "Chart.yaml", Content: []byte("a: b\n")}}, date)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(unpacked)
	header, err := archive.Next()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(archive)
	if err != nil || string(text) != "a: b\n" || header.Name != "cluster-registry-operator/Chart.yaml" || !header.ModTime.Equal(date) || header.Mode != 0o644 {
		t.Errorf("the archive has %q as %+v (%v)", text, header, err)
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last file: %v", err)
	}
	if got := ArchiveName("v0.2.0"); got != "cluster-registry-operator-0.2.0.tgz" {
		t.Errorf("the archive is called %s", got)
	}
}

package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func program(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestArchiveIsReproducible(t *testing.T) {
	const reference = "registry.localhost/demo:v1"
	var digests []string
	for range 2 {
		dir := t.TempDir()
		spec := Spec{Reference: reference, Programs: []string{program(t, dir, "b", "bbb"), program(t, dir, "a", "aaa")}, Entrypoint: []string{"/usr/local/bin/a"}}
		got, err := WriteArchive(filepath.Join(dir, "out.tar"), spec)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, got[0].String())
	}
	if digests[0] != digests[1] {
		t.Errorf("the same programs in two folders gave %s and %s", digests[0], digests[1])
	}
}

func TestArchiveContent(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "out.tar")
	spec := Spec{Reference: "registry.localhost/demo:v1", Programs: []string{program(t, dir, "demo", "binary")}, Entrypoint: []string{"/usr/local/bin/demo"}}
	if _, err := WriteArchive(archive, spec); err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != User || config.Config.Entrypoint[0] != "/usr/local/bin/demo" {
		t.Errorf("config is %+v", config.Config)
	}
	files := map[string]*tar.Header{}
	r := tar.NewReader(mutate.Extract(image))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(h.Name, "/")] = h
	}
	if h := files["usr/local/bin/demo"]; h == nil || h.Mode != 0o755 || h.Uid != 0 {
		t.Errorf("the program's entry is %+v", h)
	}
	if h := files["etc/ssl/certs/ca-certificates.crt"]; h == nil || h.Size < 100_000 {
		t.Errorf("the CA bundle's entry is %+v", h)
	}
	if h := files["tmp"]; h == nil || h.Mode != 0o1777 {
		t.Errorf("/tmp is %+v", h)
	}
}

func TestFailedArchiveLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "out.tar")
	for reason, spec := range map[string]Spec{
		"a program is missing":     {Reference: "registry.localhost/demo:v1", Programs: []string{filepath.Join(dir, "absent")}},
		"the reference has no tag": {Reference: "registry.localhost/demo"},
	} {
		if _, err := WriteArchive(archive, spec); err == nil {
			t.Errorf("%s: no error", reason)
		}
		if _, err := os.Stat(archive); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: an archive was left: %v", reason, err)
		}
	}
}

package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// unpack unpacks an archive into a new folder.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	dir := t.TempDir()
	r := tar.NewReader(file)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, h.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// demo returns an image for two architectures.
func demo(t *testing.T) []Spec {
	var specs []Spec
	for _, arch := range []string{"amd64", "arm64"} {
		specs = append(specs, Spec{Reference: "registry.example/demo:v1", Programs: []string{program(t, t.TempDir(), "demo", "binary for "+arch)},
			Entrypoint: []string{"/usr/local/bin/demo"}, Architecture: arch, Created: time.Unix(1e9, 0).UTC()})
	}
	return specs
}

func TestIndexHasEachArchitecture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images", "demo.tar")
	digest, err := WriteIndex(path, demo(t)...)
	if err != nil {
		t.Fatal(err)
	}
	top, err := layout.ImageIndexFromPath(unpack(t, path))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != digest {
		t.Fatalf("the layout has %+v, want the one index %s", manifest.Manifests, digest)
	}
	if names := manifest.Manifests[0].Annotations; names["org.opencontainers.image.ref.name"] != "v1" || names["io.containerd.image.name"] != "registry.example/demo:v1" {
		t.Errorf("the image is called %v", names)
	}
	index, err := top.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err = index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if "linux/"+config.Architecture != m.Platform.String() || !config.Created.Equal(time.Unix(1e9, 0)) || config.Config.User != User {
			t.Errorf("the image for %s says that it is for %s, made %s, for user %s", m.Platform, config.Architecture, config.Created, config.Config.User)
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("the platforms are %v", platforms)
	}
}

func TestIndexIsReproducible(t *testing.T) {
	var archives [2]string
	for i := range archives {
		path := filepath.Join(t.TempDir(), "demo.tar")
		if _, err := WriteIndex(path, demo(t)...); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = string(content)
	}
	if archives[0] != archives[1] {
		t.Error("the same programs in two folders gave two archives")
	}
}

func TestFailedIndexLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.tar")
	specs := demo(t)
	if err := os.Remove(specs[1].Programs[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteIndex(path, specs...); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a program: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an archive was left: %v", err)
	}
}

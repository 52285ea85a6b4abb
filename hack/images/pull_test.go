package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/clusterregistry/operator/e2e/framework/needs"
	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/cluster/image"
	"github.com/clusterregistry/operator/operator/version"
)

// publish publishes an image of this machine's architecture and of another one, and
// returns the registry's address, the digest of both and that of this machine's.
func publish(t *testing.T, path string) (address, index, digest string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := v1.ImageIndex(empty.Index)
	for _, arch := range []string{"riscv64", runtime.GOARCH} {
		built, err := image.Build(image.Spec{Reference: "any:tag", Programs: []string{program}, Architecture: arch, Labels: map[string]string{"org.opencontainers.image.revision": "0123"}})
		if err != nil {
			t.Fatal(err)
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: built, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
		hash, err := built.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digest = hash.String()
	}
	address = strings.TrimPrefix(server.URL, "http://")
	to, err := name.NewTag(address + path)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(to, all); err != nil {
		t.Fatal(err)
	}
	hash, err := all.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return address, hash.String(), digest
}

// TestPull pulls an image that is published for several architectures.
func TestPull(t *testing.T) {
	t.Chdir(t.TempDir())
	address, index, digest := publish(t, "/published/clusterregistry-apiserver:v0.1.0")
	m := maker{repository: image.LocalRepository, published: address + "/published"}
	got, err := m.pulledOrBuilt(t.Context(), version.Image{Name: "clusterregistry-apiserver", Tag: "v0.1.0", Digest: index})
	if err != nil {
		t.Fatal(err)
	}
	const reference = image.LocalRepository + "/clusterregistry-apiserver:v0.1.0"
	if got.Reference != reference || got.Digest != digest || got.Commit != "0123" {
		t.Errorf("pulled %+v, want %s of %s", got, reference, digest)
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	content, err := tarball.ImageFromPath(got.Archive, &tag)
	if err != nil {
		t.Fatalf("the archive does not have the image by its local name: %v", err)
	}
	if config, err := content.ConfigFile(); err != nil || config.Architecture != runtime.GOARCH || config.Config.User != image.User {
		t.Errorf("the archive has %+v, %v", config, err)
	}
	if left, _ := filepath.Glob(out + "/*.partial"); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestPullFails is about images that can't be had: with another content than recorded
// or from a registry that refuses. They are built, which says why that fails here.
func TestPullFails(t *testing.T) {
	t.Chdir(t.TempDir())
	address, _, _ := publish(t, "/published/other:v0.1.0")
	refusing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(refusing.Close)
	of := version.Image{Name: "other", Tag: "v0.1.0", Digest: "sha256:" + strings.Repeat("a", 64)}
	for _, published := range []string{address + "/published", strings.TrimPrefix(refusing.URL, "http://") + "/published", ""} {
		m := maker{repository: image.LocalRepository, published: published, releases: []version.Release{{Version: "v0.1.0"}}}
		if published != "" {
			if _, err := m.pull(t.Context(), of); err == nil {
				t.Errorf("%s: pulled", published)
			}
		}
		if _, err := m.pulledOrBuilt(t.Context(), of); err == nil || !strings.Contains(err.Error(), "no program of a release is other") {
			t.Errorf("%q: %v", published, err)
		}
	}
	if files, _ := filepath.Glob(out + "/*"); len(files) > 0 {
		t.Errorf("left are %v", files)
	}
}

// TestEveryImageCanBeBuilt expects a program, and a release that is its tag, for every
// image that releases run.
func TestEveryImageCanBeBuilt(t *testing.T) {
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	all, err := needs.Of(releases)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range all.Images() {
		if of.Name == "etcd" {
			if !slices.Contains(components.EtcdVersions, of.Tag) {
				t.Errorf("etcd %s is not among hack/cluster/components", of.Tag)
			}
			continue
		}
		if of == needs.S3Server {
			continue // of a component
		}
		if r, p, err := origin(releases, of); err != nil || r.Version != of.Tag || p.Name != of.Name {
			t.Errorf("%s:%s is built from %s of %s, %v", of.Name, of.Tag, p.Name, r.Version, err)
		}
	}
}

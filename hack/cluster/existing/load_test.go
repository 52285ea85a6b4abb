package existing

import (
	"bytes"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// TestLoad pushes an archive to a registry, where the image has the digest that it had before, and
// refuses names that exist on local clusters only.
func TestLoad(t *testing.T) {
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	want, err := random.Image(1024, 2)
	if err != nil {
		t.Fatal(err)
	}
	write := func(reference string) (name.Tag, string) {
		tag, err := name.NewTag(reference)
		if err != nil {
			t.Fatal(err)
		}
		archive := filepath.Join(t.TempDir(), "image.tar")
		if err := tarball.WriteToFile(archive, tag, want); err != nil {
			t.Fatal(err)
		}
		return tag, archive
	}
	var out bytes.Buffer
	c := &Cluster{Out: &out}
	tag, archive := write(strings.TrimPrefix(server.URL, "http://") + "/team/operator:v1")
	if err := c.Load(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Get(tag)
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := want.Digest(); err != nil || pushed.Digest != digest || !strings.Contains(out.String(), "pushing "+tag.String()) {
		t.Errorf("pushed %s, want %s, %v; it prints %q", pushed.Digest, digest, err, &out)
	}
	_, archive = write("registry.localhost/operator:v1")
	if err := c.Load(t.Context(), archive); err == nil || !strings.Contains(err.Error(), "set IMAGE_REPOSITORY") {
		t.Errorf("a local name: %v", err)
	}
	if err := c.Load(t.Context(), filepath.Join(t.TempDir(), "none.tar")); err == nil || !strings.Contains(err.Error(), "make images") {
		t.Errorf("no archive: %v", err)
	}
}

package framework

import (
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// LoadAs brings an image of this repository to every node under another
// reference, as that of a broken release.
func LoadAs(t *testing.T, image Image, reference string) {
	t.Helper()
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	content, err := tarball.ImageFromPath(filepath.Join(Root(t), image.Archive), nil)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := tarball.WriteToFile(archive, tag, content); err != nil {
		t.Fatal(err)
	}
	Cluster(t, "load", archive)
}

// TaggedImage returns the image with the given name and tag.
func TaggedImage(t *testing.T, name, tag string) Image {
	t.Helper()
	for _, image := range Images(t) {
		if image.Name == name && image.Tag == tag {
			return image
		}
	}
	t.Fatalf("\"make images\" built no image %s:%s; if no test of this package ran it before, add it to e2e/framework/needs/needs.yaml", name, tag)
	return Image{}
}

package framework

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Image is an image that this repository builds.
type Image struct {
	// Name and Tag identify the image; Reference is its whole name.
	Name, Tag, Reference string
	// Archive is its file, from the root of the repository.
	Archive string
	// Commit is the source of the project's own images, empty for others.
	Commit string
}

// Images returns the images that "make images" built last.
func Images(t *testing.T) []Image {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(Root(t), "bin", "images", "images.json"))
	if err != nil {
		t.Fatalf("this test needs the project's images: %v\n\"make e2e\" builds and loads them", err)
	}
	var images []Image
	if err := json.Unmarshal(content, &images); err != nil {
		t.Fatal(err)
	}
	return images
}

// FindImage returns the first image with the given name: that of the present source, of
// what is built from it.
func FindImage(t *testing.T, name string) Image {
	t.Helper()
	if name != "etcd" && name != operatorName && !Needs(t).Source {
		t.Fatalf("this test runs %s of the present source, which the tests of its package do not say: add \"source\" to e2e/framework/needs/needs.yaml", name)
	}
	for _, image := range Images(t) {
		if image.Name == name {
			return image
		}
	}
	t.Fatalf("\"make images\" built no image %q", name)
	return Image{}
}

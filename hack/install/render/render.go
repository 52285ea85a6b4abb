// Package render builds the objects that make up an installed operator from
// their kustomize base.
package render

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/clusterregistry/operator/hack/image"
)

// Base is the kustomize base, from the top of the repository.
const Base = "manifests/operator"

// Image is the operator's image, and where the images of registries come from.
type Image struct {
	// Reference is the operator's image.
	Reference string
	// Digest changes when the image of an unchanged reference does, as that of
	// a changed work tree: the pods are replaced then.
	Digest string
	// Repository is what precedes the name of every image.
	Repository string
}

// NewImage returns the image to install: as it was built, or, if repository is
// not empty, from there.
func NewImage(b image.Built, repository string) Image {
	name := "/" + b.Name + ":" + b.Tag
	if repository == "" {
		repository = strings.TrimSuffix(b.Reference, name)
	}
	return Image{Reference: repository + name, Digest: b.Digest, Repository: repository}
}

// The places of base and overlay in the file system that kustomize sees.
const (
	basePlace    = "/base"
	overlayPlace = "/overlay"
)

// DigestAnnotation is the annotation of the operator's pods that has Image.Digest.
const DigestAnnotation = "operator.clusterregistry.io/image-digest"

// overlay is filled with the fields of Image, in their order.
const overlay = `
resources: [../base]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: clusterregistry-operator, namespace: clusterregistry-system}
    spec:
      template:
        metadata: {annotations: {` + DigestAnnotation + `: %q}}
        spec:
          containers:
          - name: operator
            image: %q
            env: [{name: IMAGE_REPOSITORY, value: %q}]
`

// Objects returns the objects of the base, for the given image, in the order in
// which to apply them.
func Objects(base string, i Image) ([]*unstructured.Unstructured, error) {
	files := filesys.MakeFsInMemory()
	if err := copyInto(files, base); err != nil {
		return nil, err
	}
	if err := files.WriteFile(overlayPlace+"/kustomization.yaml", fmt.Appendf(nil, overlay, i.Digest, i.Reference, i.Repository)); err != nil {
		return nil, err
	}
	return build(files, overlayPlace)
}

// Published returns the objects of the base as it is, for the published image.
func Published(base string) ([]*unstructured.Unstructured, error) {
	files := filesys.MakeFsInMemory()
	if err := copyInto(files, base); err != nil {
		return nil, err
	}
	return build(files, basePlace)
}

func copyInto(files filesys.FileSystem, base string) error {
	return filepath.WalkDir(base, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(base, name)
		if err != nil {
			return err
		}
		return files.WriteFile(path.Join(basePlace, filepath.ToSlash(relative)), content)
	})
}

func build(files filesys.FileSystem, place string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	// Namespaces and definitions before what needs them, whatever the base's order.
	options.Reorder = krusty.ReorderOptionLegacy
	resources, err := krusty.MakeKustomizer(options).Run(files, place)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", Base, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		// By way of JSON, because unstructured objects know no int.
		content, err := resource.MarshalJSON()
		object := &unstructured.Unstructured{}
		if err := errors.Join(err, object.UnmarshalJSON(content)); err != nil {
			return nil, fmt.Errorf("build %s: %w", Base, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

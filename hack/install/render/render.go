// Package render builds the objects that make up an installed operator from
// their kustomize base.
package render

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/hack/product"
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
func NewImage(b product.Image, repository string) Image {
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

// Directory returns the objects of a kustomization that is on disk with all that it names.
func Directory(place string) ([]*unstructured.Unstructured, error) {
	return build(filesys.MakeFsOnDisk(), place)
}

// PublishedImage returns the image of the base as it is.
func PublishedImage(base string) (Image, error) {
	objects, err := Published(base)
	if err != nil {
		return Image{}, err
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		var deployment appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
			return Image{}, fmt.Errorf("%s: Deployment %s: %w", base, object.GetName(), err)
		}
		operator := deployment.Spec.Template.Spec.Containers[0]
		for _, variable := range operator.Env {
			if variable.Name == "IMAGE_REPOSITORY" {
				return Image{Reference: operator.Image, Repository: variable.Value}, nil
			}
		}
	}
	return Image{}, fmt.Errorf("%s has no Deployment whose first container has the variable IMAGE_REPOSITORY", base)
}

// YAML returns objects as one file, which kubectl applies in their order.
func YAML(objects []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for _, object := range objects {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		out.WriteString("---\n")
		out.Write(content)
	}
	return out.Bytes(), nil
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
		return nil, fmt.Errorf("build %s: %w", place, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		// By way of JSON, because unstructured objects know no int.
		content, err := resource.MarshalJSON()
		object := &unstructured.Unstructured{}
		if err := errors.Join(err, object.UnmarshalJSON(content)); err != nil {
			return nil, fmt.Errorf("build %s: %w", place, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

package render

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/clusterregistry/operator/manifests"
)

// Render returns the objects of a registry. An error means that the manifests
// and the input don't fit, which no spec should be able to cause.
func Render(in Input) (*Result, error) {
	result, err := renderLayout(in, in.Release.EtcdLayout)
	if err != nil {
		return nil, err
	}
	if in.Release.Layout != in.Release.EtcdLayout {
		servers, err := renderLayout(in, in.Release.Layout)
		if err != nil {
			return nil, err
		}
		for _, stage := range []Stage{StageServer, StageController, StageEndpoint} {
			result.Stages[stage] = servers.Stages[stage]
		}
		maps.Copy(result.lacks, servers.lacks)
	}
	if in.Stopped.Servers { // without a backend, deletions of namespaces in the host cluster hang
		delete(result.Stages, StageEndpoint)
	}
	return result, nil
}

// renderLayout returns the objects of a registry whose releases all have one
// layout.
func renderLayout(in Input, layout string) (*Result, error) {
	k, err := overlay(in, layout)
	if err != nil {
		return nil, err
	}
	objects, err := build(k)
	if err != nil {
		return nil, fmt.Errorf("render the registry in layout %s: %w", layout, err)
	}
	result := &Result{Stages: map[Stage][]*unstructured.Unstructured{}, lacks: map[*unstructured.Unstructured]string{}}
	values := values(in)
	for _, object := range inNamespaces(inGenerations(objects, in.Authorities), in) {
		if lacks := lacking(object.Object, values); lacks != "" {
			result.lacks[object] = lacks
		}
		if _, err := substitute(object.Object, values); err != nil {
			return nil, fmt.Errorf("render %s %s in layout %s: %w", object.GetKind(), object.GetName(), layout, err)
		}
		if err := dress(in, object); err != nil {
			return nil, fmt.Errorf("render the pods of %s %s in layout %s: %w", object.GetKind(), object.GetName(), layout, err)
		}
		stage := Stage(object.GetAnnotations()[annotationStage])
		result.Stages[stage] = append(result.Stages[stage], object)
	}
	return result, nil
}

// layouts has the manifests of each layout, in a directory of its name below root.
var layouts fs.FS = manifests.Registry

// builds are what kustomize made of the overlays that were used last.
var builds = newMemory()

// build returns what the embedded manifests are with an overlay.
func build(overlay kustomize.Kustomization) ([]*unstructured.Unstructured, error) {
	content, err := json.Marshal(overlay) // which is YAML, too, and takes a fourth of the time
	if err != nil {
		return nil, err
	}
	return builds.of(string(content), func() ([]*unstructured.Unstructured, error) { return run(content) })
}

// run runs kustomize over the embedded manifests and an overlay.
func run(overlay []byte) ([]*unstructured.Unstructured, error) {
	memory := filesys.MakeFsInMemory()
	err := fs.WalkDir(layouts, root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(layouts, path)
		if err != nil {
			return err
		}
		return memory.WriteFile(path, content)
	})
	if err != nil {
		return nil, err
	}
	if err := memory.WriteFile("kustomization.yaml", overlay); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // the overlay says it
	built, err := krusty.MakeKustomizer(options).Run(memory, ".")
	if err != nil {
		return nil, err
	}
	return objects(built)
}

func objects(built resmap.ResMap) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, err
		}
		out = append(out, object)
	}
	return out, nil
}

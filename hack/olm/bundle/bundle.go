package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// packageName is the package's name in catalogs.
const packageName = "clusterregistry-operator"

// The channels that a bundle is in. Users who name none get the default one.
const (
	channels       = "alpha,stable"
	defaultChannel = "stable"
)

// elsewhere are kinds that a bundle must not hold, and who makes them instead. Roles
// of a bundle would end up in the operator's namespace, wherever they belong, and
// some hosts refuse policies in bundles.
var elsewhere = map[string]string{
	"Namespace":          "OLM's user",
	"ServiceAccount":     "the ClusterServiceVersion",
	"Deployment":         "the ClusterServiceVersion",
	"ClusterRoleBinding": "the ClusterServiceVersion",
	"Role":               "the ClusterServiceVersion",
	"RoleBinding":        "the ClusterServiceVersion",
	"NetworkPolicy":      "whoever wants to limit who reaches the operator",
}

// files returns a bundle of the objects that make up an installed operator:
// paths in the bundle's folder, and contents.
func files(o options, objects []*unstructured.Unstructured) (map[string][]byte, error) {
	out := map[string][]byte{}
	add := func(name string, content any) error {
		text, err := yaml.Marshal(content)
		out[name] = text
		return err
	}
	csv, err := o.csv(objects)
	if err != nil {
		return nil, err
	}
	if err := add("manifests/"+packageName+".clusterserviceversion.yaml", csv); err != nil {
		return nil, err
	}
	for _, object := range objects {
		if _, made := elsewhere[object.GetKind()]; made || object.GetName() == operatorRole {
			continue
		}
		object = object.DeepCopy()
		object.SetNamespace("") // OLM sets the operator's
		if err := add("manifests/"+fileName(object), object.Object); err != nil {
			return nil, err
		}
	}
	return out, add("metadata/annotations.yaml", map[string]any{"annotations": annotations()})
}

// annotations are what catalogs read before they look into the bundle.
func annotations() map[string]string {
	return map[string]string{
		"operators.operatorframework.io.bundle.mediatype.v1":       "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1":       "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1":        "metadata/",
		"operators.operatorframework.io.bundle.package.v1":         packageName,
		"operators.operatorframework.io.bundle.channels.v1":        channels,
		"operators.operatorframework.io.bundle.channel.default.v1": defaultChannel,
	}
}

// fileName is what operator-sdk names the file of an object.
func fileName(object *unstructured.Unstructured) string {
	name := strings.ReplaceAll(object.GetName(), ":", "-") // not on every file system
	return name + "_" + strings.ToLower(object.GetKind()) + ".yaml"
}

// write replaces a bundle's folder.
func write(dir string, files map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil { //nolint:gosec // everybody may read a bundle
			return err
		}
	}
	return nil
}

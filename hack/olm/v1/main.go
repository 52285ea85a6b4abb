// Command v1 prints the objects that OLM v1 makes of a bundle:
//
//	v1 BUNDLE_DIR NAMESPACE
//
// It runs OLM v1's own renderer, which is internal to the module
// github.com/operator-framework/operator-controller; hence this module's name.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/bundle/source"
	"github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/render/registryv1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: v1 BUNDLE_DIR NAMESPACE")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir, namespace string) error {
	objects, err := objects(dir, namespace)
	if err != nil {
		return err
	}
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "---\n%s", text)
	}
	return nil
}

// objects returns what OLM v1 would apply to install a bundle into a namespace.
func objects(dir, namespace string) ([]client.Object, error) {
	bundle, err := source.FromFS(os.DirFS(dir)).GetBundle()
	if err != nil {
		return nil, fmt.Errorf("read the bundle in %s: %w", dir, err)
	}
	objects, err := registryv1.Renderer.Render(bundle, namespace)
	if err != nil {
		return nil, fmt.Errorf("render the bundle in %s: %w", dir, err)
	}
	return objects, nil
}

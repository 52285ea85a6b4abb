// Command render prints the manifests of cert-manager for the local cluster:
// the CustomResourceDefinitions and cert-manager's own Helm chart, both read
// from cert-manager's module, with the images that the cluster has.
//
//	render MODULE_DIR VERSION IMAGE_REPOSITORY KUBERNETES_VERSION
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: render MODULE_DIR VERSION IMAGE_REPOSITORY KUBERNETES_VERSION")
		os.Exit(2)
	}
	manifests, err := render(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
	fmt.Print(manifests)
}

func render(moduleDir, version, repository, kubernetesVersion string) (string, error) {
	chart, err := loader.LoadDir(filepath.Join(moduleDir, "deploy", "charts", "cert-manager"))
	if err != nil {
		return "", err
	}
	// The module's chart carries a placeholder; releases stamp both fields.
	chart.Metadata.Version, chart.Metadata.AppVersion = version, version

	capabilities := chartutil.DefaultCapabilities.Copy()
	parsed, err := chartutil.ParseKubeVersion(kubernetesVersion)
	if err != nil {
		return "", err
	}
	capabilities.KubeVersion = *parsed
	image := func(component string) map[string]any {
		return map[string]any{"repository": repository + "/cert-manager-" + component, "tag": version}
	}
	values, err := chartutil.ToRenderValues(chart, map[string]any{
		"crds":            map[string]any{"enabled": true},
		"startupapicheck": map[string]any{"enabled": false},
		"image":           image("controller"),
		"webhook":         map[string]any{"image": image("webhook")},
		"cainjector":      map[string]any{"image": image("cainjector")},
	}, chartutil.ReleaseOptions{Name: "cert-manager", Namespace: "cert-manager", Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return "", err
	}
	names := make([]string, 0, len(files))
	for name, content := range files {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(content) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out := "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: cert-manager\n"
	for _, name := range names {
		out += "---\n" + strings.TrimPrefix(files[name], "---\n") + "\n"
	}
	return out, nil
}

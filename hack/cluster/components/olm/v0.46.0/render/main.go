// Command render prints the manifests of the Operator Lifecycle Manager for a
// local cluster: its own chart, read from its module, with the images that the
// cluster has. It leaves out what asks for more of them, or for the internet: the
// package server and the public catalog.
//
//	render MODULE_DIR OLM_IMAGE OPM_IMAGE KUBERNETES_VERSION
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// left out are templates by parts of their names.
var leftOut = []string{"packageserver", "upstream-operators", "service-monitor", "prometheus-rule", "operatorstatus"}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: render MODULE_DIR OLM_IMAGE OPM_IMAGE KUBERNETES_VERSION")
		os.Exit(2)
	}
	manifests, err := render(filepath.Join(os.Args[1], "deploy"), os.Args[2], os.Args[3], os.Args[4])
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
	fmt.Print(manifests)
}

func render(deploy, olm, opm, kubernetesVersion string) (string, error) {
	chart, err := loader.LoadDir(filepath.Join(deploy, "chart"))
	if err != nil {
		return "", err
	}
	values, err := upstreamValues(deploy, olm, opm)
	if err != nil {
		return "", err
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	parsed, err := chartutil.ParseKubeVersion(kubernetesVersion)
	if err != nil {
		return "", err
	}
	capabilities.KubeVersion = *parsed
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "olm", Namespace: "olm", Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, crd := range chart.CRDObjects() {
		fmt.Fprintf(&out, "---\n%s\n", crd.File.Data)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		skip := slices.ContainsFunc(leftOut, func(part string) bool { return strings.Contains(name, part) })
		if !skip && strings.HasSuffix(name, ".yaml") && strings.TrimSpace(files[name]) != "" {
			fmt.Fprintf(&out, "---\n%s\n", strings.TrimPrefix(files[name], "---\n"))
		}
	}
	return out.String(), nil
}

// upstreamValues are those that OLM is released with, but for the images.
func upstreamValues(deploy, olm, opm string) (map[string]any, error) {
	text, err := os.ReadFile(filepath.Join(deploy, "upstream", "values.yaml"))
	if err != nil {
		return nil, err
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	image := map[string]any{"ref": olm, "pullPolicy": "IfNotPresent"}
	for _, part := range []string{"olm", "catalog", "package"} {
		section, ok := values[part].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("deploy/upstream/values.yaml has no section %s", part)
		}
		section["image"] = image
	}
	values["catalog"].(map[string]any)["opmImageArgs"] = "--opmImage=" + opm
	return values, nil
}

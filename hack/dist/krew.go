package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/hack/product"
)

const (
	// krewName is the plugin's name in krew's index, whose naming guide refuses a word
	// as general as registry.
	krewName = "cluster-registry"
	homepage = "https://github.com/clusterregistry/operator"
	// downloads is where the files of a release are, which its version follows.
	downloads = homepage + "/releases/download/"
)

// krewPlugin is a manifest of krew, krew.googlecontainertools.github.com/v1alpha2: what
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest says of it.
type krewPlugin struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   krewMetadata `json:"metadata"`
	Spec       krewSpec     `json:"spec"`
}

type krewMetadata struct {
	Name string `json:"name"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Caveats          string         `json:"caveats"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector metav1.LabelSelector `json:"selector"`
	URI      string               `json:"uri"`
	SHA256   string               `json:"sha256"`
	// Files are what is taken out of the archive.
	Files []krewFile `json:"files"`
	// Bin is the program among them.
	Bin string `json:"bin"`
}

type krewFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// writeKrew writes the manifest with which krew installs the plugin, for the archives
// that are there.
func writeKrew(_ context.Context, r *release, dir string) error {
	if len(r.archives) == 0 {
		return nil // without a platform it would be no manifest
	}
	content, err := yaml.Marshal(manifest(r.plugin, r.archives))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, pluginDir, krewName+".yaml"), content, 0o644)
}

// manifest returns the manifest for archives with the given sums.
func manifest(p plugin, sums map[product.Platform]string) krewPlugin {
	out := krewPlugin{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: krewMetadata{krewName}}
	out.Spec = krewSpec{
		Version: p.tag, Homepage: homepage, ShortDescription: "Show and drive cluster registries",
		Description: `Works with the registries of the Cluster Registry Operator, the list of
clusters that multi-cluster tools share: join and unjoin clusters, show their
state, make one kubeconfig of the fleet, export and import clusters, plan and
start upgrades of a registry, and find what is wrong with one.
`,
		Caveats: fmt.Sprintf(`Run it as "kubectl %s", such as "kubectl %[1]s status". The documentation
calls it "kubectl registry", which it is when the program %s is in
your $PATH by that name.
`, krewName, p.program.Name),
	}
	for _, platform := range p.platforms() {
		file := platform.File(p.program)
		out.Spec.Platforms = append(out.Spec.Platforms, krewPlatform{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"os": platform.OS, "arch": platform.Arch}},
			URI:      downloads + p.tag + "/" + p.archive(platform), SHA256: sums[platform],
			Files: []krewFile{{file, "."}, {license, "."}}, Bin: file,
		})
	}
	return out
}

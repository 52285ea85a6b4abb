package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/hack/cluster/components"
)

// binaries maps each component to the folder of its programs.
type binaries map[string]string

// programs builds what is missing of everything that the cluster runs.
func (c *Cluster) programs(ctx context.Context) (binaries, error) {
	bins := binaries{}
	type need struct {
		component components.Component
		// programs are those that are run; none means all.
		programs []string
	}
	needs := []need{
		{component: components.Etcd(components.EtcdVersions[0]), programs: []string{"etcd"}},
		{component: components.Kubernetes(c.state.KubernetesVersion), programs: []string{"kube-apiserver", "kube-controller-manager"}},
	}
	if c.state.Nodes > 0 {
		needs[1].programs = nil
		needs = append(needs, need{component: components.Pause}, need{component: components.CoreDNS}, need{component: components.Provisioner}, need{component: components.CertManager})
	}
	for _, n := range needs {
		component := n.component
		dir, err := c.Builder.Ensure(ctx, component, n.programs...)
		if err != nil {
			return nil, err
		}
		bins[component.Name] = dir
	}
	return bins, nil
}

// kubernetes returns the path of one of Kubernetes' programs.
func (b binaries) kubernetes(program string) string {
	return filepath.Join(b["kubernetes"], program)
}

// key names the content of the programs that images are made of.
func (b binaries) key() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if name != "kubernetes" && name != "etcd" {
			parts = append(parts, name, filepath.Base(b[name]))
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:])[:10]
}

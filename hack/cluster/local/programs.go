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
	for _, component := range []components.Component{
		components.Pause, components.Etcd(components.EtcdVersions[0]), components.Kubernetes(c.state.KubernetesVersion),
		components.CoreDNS, components.Provisioner, components.CertManager,
	} {
		dir, err := c.Builder.Ensure(ctx, component)
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

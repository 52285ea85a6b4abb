package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/hack/cluster/addons"
	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/cluster/image"
	"github.com/clusterregistry/operator/hack/cluster/network"
)

// applyAddons applies DNS, storage and cert-manager and waits until they serve.
func (c *Cluster) applyAddons(ctx context.Context, api client.Client, bins binaries) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	own, err := addons.Local(addons.Values{Image: platformReference, DNSAddress: network.DNSAddress, Volumes: volumes})
	if err != nil {
		return err
	}
	certManager, err := c.certManager(ctx, bins)
	if err != nil {
		return err
	}
	for _, manifests := range [][]byte{own, certManager} {
		if err := addons.Apply(ctx, api, manifests); err != nil {
			return err
		}
	}
	if err := addons.WaitAvailable(ctx, api, "kube-system", "cert-manager"); err != nil {
		return err
	}
	return addons.WaitCertManager(ctx, api)
}

// publishInfo publishes the cluster's own address, as kubeadm does.
func (c *Cluster) publishInfo(ctx context.Context, api client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	ca, err := os.ReadFile(c.pki().Cert("ca"))
	if err != nil {
		return err
	}
	return addons.Apply(ctx, api, addons.ClusterInfo(c.server(), ca))
}

// certManager renders cert-manager's chart, which its module on the proxy
// holds, for this cluster.
func (c *Cluster) certManager(ctx context.Context, bins binaries) ([]byte, error) {
	module, err := c.Builder.ModuleDir(ctx, components.CertManager, "github.com/cert-manager/cert-manager")
	if err != nil {
		return nil, err
	}
	render := exec.CommandContext(ctx, filepath.Join(bins["cert-manager"], "render"), module, components.CertManager.Version, image.LocalRepository, c.state.KubernetesVersion)
	var stderr strings.Builder
	render.Stderr = &stderr
	out, err := render.Output()
	if err != nil {
		return nil, fmt.Errorf("render the chart of cert-manager: %w: %s", err, stderr.String())
	}
	return out, nil
}

package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/cluster/network"
)

// state is what a cluster is made of; it is fixed when the cluster is made.
type state struct {
	KubernetesVersion string       `json:"kubernetesVersion"`
	Nodes             int          `json:"nodes"`
	Subnet            netip.Prefix `json:"subnet"`
	// Beside is set when the cluster is on the network of another one.
	Beside *neighbor `json:"beside,omitempty"`
}

const (
	defaultNodes = 3
	maxNodes     = 20
	// runtimeRoot holds runc's records of all clusters, by id.
	runtimeRoot = "/run/clusterregistry-clusters"
)

// id tells the cluster apart from all others on the computer: it follows from
// the folder alone.
func (c *Cluster) id() string {
	sum := sha256.Sum256([]byte(c.Dir))
	return hex.EncodeToString(sum[:])[:8]
}

func (c *Cluster) runtimeDir() string { return filepath.Join(runtimeRoot, c.id()) }

func (c *Cluster) stateFile() string { return filepath.Join(c.Dir, "cluster.json") }

// load reads the state of a cluster that exists.
func (c *Cluster) load() error {
	content, err := os.ReadFile(c.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no cluster %q here; \"make cluster\" makes one", c.Name)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, &c.state); err != nil {
		return fmt.Errorf("%s is damaged (%w); \"make cluster-down\" removes the cluster", c.stateFile(), err)
	}
	return nil
}

// loadOrCreateState reads the state and checks it against the wishes, or
// decides on it for a new cluster. The program that machines run as their init
// is copied as well, so that a rebuilt checkout doesn't take it away.
func (c *Cluster) loadOrCreateState(ctx context.Context) error {
	if c.KubernetesVersion != "" && !slices.Contains(components.KubernetesVersions, c.KubernetesVersion) {
		return fmt.Errorf("Kubernetes %s is no version of a cluster here; choose one of %v", c.KubernetesVersion, components.KubernetesVersions) //nolint:staticcheck // a name
	}
	if c.Nodes != nil && (*c.Nodes < 0 || *c.Nodes > maxNodes) {
		return fmt.Errorf("%d nodes are not possible; choose 0 (a control plane alone) to %d", *c.Nodes, maxNodes)
	}
	if _, err := os.Stat(c.stateFile()); err == nil {
		if err := c.load(); err != nil {
			return err
		}
		if err := c.matchWishes(); err != nil {
			return err
		}
		return c.checkBeside()
	}
	// Left-overs of a cluster whose folder was deleted by hand, or whose first
	// Up was interrupted, would collide.
	if err := c.halt(ctx); err != nil {
		return err
	}
	for _, old := range []string{c.runtimeDir(), filepath.Join(c.Dir, "machines"), filepath.Join(c.Dir, "pki"), c.Kubeconfig()} {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	c.state = state{KubernetesVersion: c.KubernetesVersion, Nodes: defaultNodes}
	if c.state.KubernetesVersion == "" {
		c.state.KubernetesVersion = components.KubernetesVersions[0]
	}
	if c.Nodes != nil {
		c.state.Nodes = *c.Nodes
	}
	// Two clusters that come up at once must not choose the same subnet; the
	// winner's veth pair is what the loser sees.
	unlock, err := components.Lock(filepath.Join(c.Builder.Cache, ".subnet.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.copyInit(); err != nil {
		return err
	}
	if c.Beside != "" {
		// A place on another's network is taken by the record of it.
		if err := c.placeBeside(); err != nil {
			return err
		}
		return c.writeState()
	}
	if c.state.Subnet, err = network.ChooseSubnet(ctx, c.Subnet); err != nil {
		return err
	}
	if err := c.network().Up(ctx, controlPlane); err != nil {
		return err
	}
	return c.writeState()
}

func (c *Cluster) writeState() error {
	content, err := json.MarshalIndent(c.state, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(c.stateFile(), append(content, '\n'), 0o644)
}

// matchWishes refuses to turn an existing cluster into another one.
func (c *Cluster) matchWishes() error {
	var differs string
	switch {
	case c.KubernetesVersion != "" && c.KubernetesVersion != c.state.KubernetesVersion:
		differs = fmt.Sprintf("runs Kubernetes %s, not %s", c.state.KubernetesVersion, c.KubernetesVersion)
	case c.Nodes != nil && *c.Nodes != c.state.Nodes:
		differs = fmt.Sprintf("has %d nodes, not %d", c.state.Nodes, *c.Nodes)
	case c.Subnet != "" && c.Subnet != c.state.Subnet.String():
		differs = fmt.Sprintf("uses subnet %s, not %s", c.state.Subnet, c.Subnet)
	case c.Beside != "" && (c.state.Beside == nil || c.state.Beside.Cluster != c.Beside):
		differs = fmt.Sprintf("is not on the network of %q", c.Beside)
	default:
		return nil
	}
	return fmt.Errorf("cluster %q exists and %s; take it down first, or give the new one another --name", c.Name, differs)
}

func (c *Cluster) copyInit() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	source, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	path := c.machine(controlPlane).Init
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	target, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// removeIfEmpty removes a folder that nothing uses any more.
func removeIfEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) || len(entries) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(dir)
}

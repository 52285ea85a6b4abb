package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterregistry/operator/hack/cluster/network"
)

// neighbor is the record of a control plane that is on the network of another cluster.
type neighbor struct {
	// Cluster is the other one's name.
	Cluster string `json:"cluster"`
	// Index is what the address follows from.
	Index int `json:"index"`
	// Nodes is how many the other one has.
	Nodes int `json:"nodes"`
}

// sibling returns another cluster in the same directory.
func (c *Cluster) sibling(name string) *Cluster {
	return &Cluster{Name: name, Dir: filepath.Join(filepath.Dir(c.Dir), name), Builder: c.Builder, Out: c.Out}
}

// placeBeside decides where a new cluster has its place on the network of another one.
// The caller holds the lock under which places are given.
func (c *Cluster) placeBeside() error {
	other := c.sibling(c.Beside)
	if err := other.load(); err != nil {
		return fmt.Errorf("--beside=%s: %w", c.Beside, err)
	}
	switch {
	case c.state.Nodes > 0:
		return errors.New("--beside is for control planes: their network has no place for nodes; add --nodes=0, or leave out --beside")
	case c.Subnet != "":
		return errors.New("--beside and --subnet exclude each other: the other cluster's subnet is used")
	case other.state.Beside != nil:
		return fmt.Errorf("--beside=%s: that one is itself beside %s; name that", c.Beside, other.state.Beside.Cluster)
	}
	taken := map[int]bool{}
	for _, known := range other.besideIt() {
		taken[known.state.Beside.Index] = true
	}
	for index := 1; index <= network.MaxBeside; index++ {
		if !taken[index] {
			c.state.Subnet = other.state.Subnet
			c.state.Beside = &neighbor{Cluster: other.Name, Index: index, Nodes: other.state.Nodes}
			return nil
		}
	}
	return fmt.Errorf("--beside=%s: there are %d control planes beside it already; take one down", c.Beside, network.MaxBeside)
}

// checkBeside returns why a cluster can't have the place on another one's network that
// it was given, nil when it can.
func (c *Cluster) checkBeside() error {
	if c.state.Beside == nil {
		return nil
	}
	other := c.sibling(c.state.Beside.Cluster)
	err := other.load()
	if err == nil && (other.state.Subnet != c.state.Subnet || other.state.Nodes != c.state.Beside.Nodes) {
		err = fmt.Errorf("%q was made again, and is another one now", other.Name)
	}
	if err != nil {
		return fmt.Errorf("cluster %q is on the network of cluster %q: %w; take %q down and bring it up again beside a cluster that is up", c.Name, other.Name, err, c.Name)
	}
	return nil
}

// besideIt returns the clusters that are on this one's network, with their states. One
// whose record can't be read is left out.
func (c *Cluster) besideIt() []*Cluster {
	var out []*Cluster
	entries, err := os.ReadDir(filepath.Dir(c.Dir))
	if err != nil {
		return nil // there is no cluster at all
	}
	for _, entry := range entries {
		found := c.sibling(entry.Name())
		if found.Name != c.Name && found.load() == nil && found.state.Beside != nil && found.state.Beside.Cluster == c.Name {
			out = append(out, found)
		}
	}
	return out
}

// Stop ends all machines at once, as a power cut does. Disks and the network stay, so
// that connections are refused, and Up brings the cluster back with its data.
func (c *Cluster) Stop(ctx context.Context) error {
	if err := c.load(); err != nil {
		return err
	}
	machines, err := os.ReadDir(filepath.Join(c.Dir, "machines"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range machines {
		if err := c.machine(entry.Name()).Kill(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.Out, "cluster %q is stopped; \"up\" brings it back\n", c.Name)
	return nil
}

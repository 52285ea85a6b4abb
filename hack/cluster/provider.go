package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/cluster/existing"
	"github.com/clusterregistry/operator/hack/cluster/kind"
	"github.com/clusterregistry/operator/hack/cluster/local"
)

// provider makes and keeps a cluster.
type provider interface {
	Up(ctx context.Context) error
	Down(ctx context.Context) error
	Status(ctx context.Context) error
	Load(ctx context.Context, archive string) error
	Logs(ctx context.Context, dir string) error
	Kubeconfig() string
}

// defaultName is the cluster whose kubeconfig is at .cluster/kubeconfig.
const defaultName = "registry"

// pins is the folder, in a checkout, of the modules that pin what is built.
const pins = "hack/cluster/components"

// options are the command line's.
type options struct {
	name, provider, kubernetesVersion, subnet, beside string
	// components is the directory of the modules that pin what is built; empty
	// means that of the checkout.
	components string

	// nodes is how many there are to be; nil means as many as there are, or the default.
	nodes *int
	out   io.Writer
}

// root returns the directory that .cluster is in, and that of the modules which pin
// what is built: the checkout's own, or the working directory and what --components
// names.
func (o options) root() (top, components string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", "", err
	}
	if o.components != "" {
		components, err = filepath.Abs(o.components)
		if err == nil {
			_, err = os.Stat(filepath.Join(components, "kubernetes"))
		}
		if err != nil {
			return "", "", fmt.Errorf("--components %s: %w; name hack/cluster/components of a checkout", o.components, err)
		}
		top, err = filepath.EvalSymlinks(dir)
		return top, components, err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, pins)); err == nil {
			top, err = filepath.EvalSymlinks(dir)
			return top, filepath.Join(top, pins), err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", "", fmt.Errorf("no directory above has %s; change into a checkout of the project, or name that directory of one with --components", pins)
		}
		dir = parent
	}
}

func (o options) dir() (string, error) {
	top, _, err := o.root()
	return filepath.Join(top, ".cluster", o.name), err
}

// recorded returns the provider that made the cluster, or "".
func (o options) recorded() (string, error) {
	dir, err := o.dir()
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(filepath.Join(dir, "provider"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(content)), err
}

// choose returns the name of the provider to bring a cluster up with.
func (o options) choose(ctx context.Context) (string, error) {
	made, err := o.recorded()
	if err != nil {
		return "", err
	}
	if made != "" {
		if o.provider != "auto" && o.provider != made {
			return "", fmt.Errorf("cluster %q was made by provider %s, not %s; take it down first, or choose another --name", o.name, made, o.provider)
		}
		return made, nil
	}
	if o.provider != "auto" {
		return o.provider, nil
	}
	dir, err := o.dir()
	if err != nil {
		return "", err
	}
	cache, err := components.DefaultCache()
	if err != nil {
		return "", err
	}
	notLocal := local.Possible(ctx, dir, cache)
	if notLocal == nil {
		return "local", nil
	}
	notKind := kind.Possible(ctx)
	if notKind == nil {
		return "kind", nil
	}
	return "", fmt.Errorf("no provider can run here\n  local: %w\n  kind: %w\nor use a cluster that you have: --provider existing with $KUBECONFIG", notLocal, notKind)
}

// open returns the named provider.
func (o options) open(name string) (provider, error) {
	dir, err := o.dir()
	if err != nil {
		return nil, err
	}
	switch name {
	case "local":
		return o.local(dir)
	case "kind":
		nodes := 3
		if o.nodes != nil {
			nodes = *o.nodes
		}
		if nodes < 1 || o.beside != "" {
			return nil, errors.New("the kind provider has no control planes without nodes, and none beside another cluster; leave out --beside, and use --nodes=1 or more")
		}
		return &kind.Cluster{Name: o.name, Dir: dir, KubernetesVersion: o.kubernetesVersion, Nodes: nodes, Out: o.out}, nil
	case "existing":
		if o.nodes != nil || o.beside != "" {
			return nil, errors.New("an existing cluster is used as it is; leave out --nodes and --beside")
		}
		return &existing.Cluster{Dir: dir, Out: o.out}, nil
	}
	return nil, fmt.Errorf("unknown provider %q; choose auto, local, kind or existing", name)
}

func (o options) local(dir string) (*local.Cluster, error) {
	cache, err := components.DefaultCache()
	if err != nil {
		return nil, err
	}
	_, source, err := o.root()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	return &local.Cluster{
		Name: o.name, Dir: dir, Out: o.out,
		Builder:           components.Builder{Source: source, Cache: cache, Log: o.out},
		KubernetesVersion: o.kubernetesVersion, Nodes: o.nodes, Subnet: o.subnet, Beside: o.beside,
	}, nil
}

// find returns the provider of a cluster that exists. Without a record it is
// local, whose Down finds what outlived its files.
func (o options) find() (provider, error) {
	made, err := o.recorded()
	if err != nil {
		return nil, err
	}
	if made == "" {
		made = "local"
	}
	return o.open(made)
}

// up brings the cluster up and puts its kubeconfig in place.
func (o options) up(ctx context.Context) error {
	name, err := o.choose(ctx)
	if err != nil {
		return err
	}
	p, err := o.open(name)
	if err != nil {
		return err
	}
	dir, err := o.dir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "provider"), []byte(name+"\n"), 0o644); err != nil {
		return err
	}
	if err := p.Up(ctx); err != nil {
		return err
	}
	kubeconfig := p.Kubeconfig()
	if o.name == defaultName {
		link := filepath.Join(filepath.Dir(dir), "kubeconfig")
		_ = os.Remove(link)
		if err := os.Symlink(filepath.Join(o.name, "kubeconfig"), link); err != nil {
			return err
		}
		kubeconfig = link
	}
	fmt.Fprintf(o.out, "use it with: export KUBECONFIG=%s\n", kubeconfig)
	return nil
}

// down removes the cluster and the folder of clusters when it was the last.
func (o options) down(ctx context.Context) error {
	p, err := o.find()
	if err != nil {
		return err
	}
	if err := p.Down(ctx); err != nil {
		return err
	}
	dir, err := o.dir()
	if err != nil {
		return err
	}
	if o.name == defaultName {
		_ = os.Remove(filepath.Join(filepath.Dir(dir), "kubeconfig"))
	}
	_ = os.Remove(filepath.Dir(dir)) // fails while another cluster lives in it
	return nil
}

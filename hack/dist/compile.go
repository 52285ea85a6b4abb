package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/product"
	history "github.com/clusterregistry/operator/hack/release"
	"github.com/clusterregistry/operator/operator/version"
)

// architectures are those that a release runs on.
var architectures = []string{"amd64", "arm64"}

// compiled is what goes into one image: programs for every architecture.
type compiled struct {
	name, tag string
	// commit is the source; it is empty for what is not this project's.
	commit string
	// created is when that was committed, or zero.
	created time.Time
	// programs are file names; a container runs the first.
	programs []string
	// dirs are the folders that they are in, by architecture; nil for an image that
	// was published with a release before.
	dirs map[string]string
}

// compile compiles all that a release consists of and that is not published yet:
// the operator of this checkout, each release of the registry, and etcd.
func (r *release) compile(ctx context.Context, stamp product.Stamp) ([]compiled, error) {
	operator, dirs := product.Operator(), places(stamp.Version)
	for arch, dir := range dirs {
		fmt.Printf("  build %s %s for %s\n", operator.Name, stamp.Version, arch)
		if err := product.Build(ctx, ".", dir, arch, stamp, operator); err != nil {
			return nil, err
		}
	}
	image, err := ours(operator, stamp, dirs)
	if err != nil {
		return nil, err
	}
	releases, err := version.Releases()
	if err != nil {
		return nil, err
	}
	r.recorded = digestsOf(releases)
	registries, err := r.registries(ctx, releases, releases, etcds(releases))
	return append([]compiled{image}, registries...), err
}

// registries compiles some of all releases of the registry, and versions of etcd.
func (r *release) registries(ctx context.Context, known, releases []version.Release, etcds []string) ([]compiled, error) {
	var all []compiled
	for _, of := range releases {
		images, err := r.registry(ctx, known, of)
		if err != nil {
			return nil, err
		}
		all = append(all, images...)
	}
	for _, v := range etcds {
		image, err := r.etcd(ctx, v)
		if err != nil {
			return nil, err
		}
		all = append(all, image)
	}
	return all, nil
}

// registry compiles the programs of one of all releases of the registry.
func (r *release) registry(ctx context.Context, all []version.Release, of version.Release) (images []compiled, err error) {
	programs := product.Registry()
	for _, p := range programs {
		images = append(images, compiled{name: p.Name, tag: of.Version, programs: []string{p.Name}})
	}
	if !slices.ContainsFunc(images, func(c compiled) bool { return !r.published.has(r.reference(c)) }) {
		return images, nil
	}
	source, remove, err := history.Source(ctx, ".", all, of)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	dirs, stamp := places("registry-"+of.Version), product.OfRegistry(of)
	for arch, dir := range dirs {
		out, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		fmt.Printf("  build the registry %s for %s\n", of.Version, arch)
		if err := product.Build(ctx, source, out, arch, stamp, programs...); err != nil {
			return nil, err
		}
	}
	for i, p := range programs {
		if r.published.has(r.reference(images[i])) {
			continue
		}
		if images[i], err = ours(p, stamp, dirs); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// etcds returns the versions of etcd that releases run, each once.
func etcds(releases []version.Release) []string {
	var all []string
	for _, r := range releases {
		all = append(all, r.Etcd)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// etcd compiles etcd with its two tools.
func (r *release) etcd(ctx context.Context, v string) (compiled, error) {
	component := components.Etcd(v)
	image := compiled{name: component.Name, tag: v, programs: slices.Sorted(maps.Keys(component.Packages))}
	if r.published.has(r.reference(image)) {
		return image, nil
	}
	cache, err := components.DefaultCache()
	if err != nil {
		return compiled{}, err
	}
	image.dirs = map[string]string{}
	for _, arch := range architectures {
		builder := components.Builder{Source: "hack/cluster/components", Cache: cache, Arch: arch, Log: os.Stdout}
		if image.dirs[arch], err = builder.Ensure(ctx, component); err != nil {
			return compiled{}, err
		}
	}
	return image, nil
}

// ours is the image of a program of this project.
func ours(p product.Program, stamp product.Stamp, dirs map[string]string) (compiled, error) {
	var created time.Time
	if stamp.Date != "" {
		var err error
		if created, err = time.Parse(time.RFC3339, stamp.Date); err != nil {
			return compiled{}, fmt.Errorf("the date of commit %s: %w", stamp.Commit, err)
		}
	}
	return compiled{name: p.Name, tag: stamp.Version, commit: stamp.Commit, created: created, programs: []string{p.Name}, dirs: dirs}, nil
}

// places returns a folder for programs of each architecture.
func places(name string) map[string]string {
	out := map[string]string{}
	for _, arch := range architectures {
		out[arch] = filepath.Join("bin", "dist", name, arch)
	}
	return out
}

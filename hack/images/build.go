package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/clusterregistry/operator/e2e/framework/needs"
	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/cluster/image"
	"github.com/clusterregistry/operator/hack/product"
	"github.com/clusterregistry/operator/hack/release"
	"github.com/clusterregistry/operator/operator/version"
)

// source packs programs of the present source. They are built where "make build" builds them,
// with the same flags, so that none is linked twice.
func (m maker) source(ctx context.Context, programs []product.Program) ([]product.Image, error) {
	stamp, err := product.ReadStamp(ctx, ".")
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(out)
	if err := product.Build(ctx, ".", dir, runtime.GOARCH, stamp, programs...); err != nil {
		return nil, err
	}
	var all []product.Image
	for _, p := range programs {
		b, err := m.packProgram(p, stamp, dir)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// build packs an image that a release runs: etcd, or a program of the release that is its
// tag; or an image that tests run beside it.
func (m maker) build(ctx context.Context, of version.Image) (product.Image, error) {
	switch of.Name {
	case "etcd":
		return m.component(ctx, components.Etcd(of.Tag))
	case needs.S3Server.Name:
		return m.component(ctx, components.VersityGW(of.Tag))
	}
	r, p, err := origin(m.releases, of)
	if err != nil {
		return product.Image{}, err
	}
	return m.ofRelease(ctx, r, p)
}

// origin returns the program that an image has, and the release that it is of.
func origin(releases []version.Release, of version.Image) (version.Release, product.Program, error) {
	r, err := version.Find(releases, of.Tag)
	if err != nil {
		return version.Release{}, product.Program{}, err
	}
	programs := product.Registry()
	i := slices.IndexFunc(programs, func(p product.Program) bool { return p.Name == of.Name })
	if i < 0 {
		return version.Release{}, product.Program{}, fmt.Errorf("no program of a release is %s, which %s is to run; hack/product lists them", of.Name, r.Version)
	}
	return r, programs[i], nil
}

// ofRelease packs a program of a release.
func (m maker) ofRelease(ctx context.Context, r version.Release, p product.Program) (built product.Image, err error) {
	source, remove, err := release.Source(ctx, ".", m.releases, r)
	if err != nil {
		return product.Image{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return m.buildProgram(ctx, source, p, product.OfRegistry(r))
}

// olderOperator packs the operator that upgrades of the operator begin with.
func (m maker) olderOperator(ctx context.Context) (built product.Image, err error) {
	older, err := release.Older(m.releases)
	if err != nil {
		return product.Image{}, err
	}
	source, overlay, remove, err := release.OlderOperator(ctx, ".", m.releases)
	if err != nil {
		return product.Image{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	p := product.Operator()
	p.Overlay = overlay
	return m.buildProgram(ctx, source, p, product.Stamp{Version: older.Version})
}

// buildProgram builds a program from a source, and packs it. Programs of each version stay in
// the user's cache, for all checkouts: one that has not changed is not linked again.
func (m maker) buildProgram(ctx context.Context, source string, p product.Program, stamp product.Stamp) (product.Image, error) {
	cache, err := components.DefaultCache()
	if err != nil {
		return product.Image{}, err
	}
	dir := filepath.Join(cache, "programs", stamp.Version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return product.Image{}, err
	}
	unlock, err := components.Lock(filepath.Join(dir, "."+p.Name+".lock"))
	if err != nil {
		return product.Image{}, err
	}
	defer unlock()
	if err := product.Build(ctx, source, dir, runtime.GOARCH, stamp, p); err != nil {
		return product.Image{}, err
	}
	return m.packProgram(p, stamp, dir)
}

// component packs a component of the local cluster with all of its programs, under the
// name and in the shape that a release uses etcd in production: the program of the
// component's name is on $PATH, there is no shell.
func (m maker) component(ctx context.Context, c components.Component) (product.Image, error) {
	cache, err := components.DefaultCache()
	if err != nil {
		return product.Image{}, err
	}
	builder := components.Builder{Source: "hack/cluster/components", Cache: cache, Log: os.Stdout}
	dir, err := builder.Ensure(ctx, c)
	if err != nil {
		return product.Image{}, err
	}
	var programs []string
	for _, name := range slices.Sorted(maps.Keys(c.Packages)) {
		programs = append(programs, filepath.Join(dir, name))
	}
	return m.pack(c.Name, c.Version, product.Stamp{Version: c.Version}, "/usr/local/bin/"+c.Name, programs...)
}

// packProgram packs a program that was built into dir.
func (m maker) packProgram(p product.Program, stamp product.Stamp, dir string) (product.Image, error) {
	return m.pack(p.Name, stamp.Version, stamp, "/usr/local/bin/"+p.Name, filepath.Join(dir, p.Name))
}

func (m maker) pack(name, tag string, stamp product.Stamp, entrypoint string, programs ...string) (product.Image, error) {
	b := m.named(name, tag)
	b.Commit = stamp.Commit
	labels := map[string]string{"org.opencontainers.image.title": name, "org.opencontainers.image.version": stamp.Version}
	if stamp.Commit != "" {
		labels["org.opencontainers.image.revision"] = stamp.Commit
	}
	digests, err := image.WriteArchive(b.Archive, image.Spec{Reference: b.Reference, Programs: programs, Entrypoint: []string{entrypoint}, Labels: labels})
	if err != nil {
		return product.Image{}, err
	}
	b.Digest = digests[0].String()
	return b, nil
}

// named returns an image as it will be named, without what it holds.
func (m maker) named(name, tag string) product.Image {
	return product.Image{Name: name, Tag: tag, Reference: m.repository + "/" + name + ":" + tag, Archive: filepath.Join(out, name+"-"+tag+".tar")}
}

// Command images builds, as archives under bin/images and without a container
// daemon, every image of the project, those of each release of the registry
// from that release's own commit, an older operator, and the etcd images that
// registries run.
// bin/images/images.json lists them, those of the present source first.
//
// IMAGE_REPOSITORY is the registry and path before each name; the default
// exists on local clusters only.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/clusterregistry/operator/hack/cluster/components"
	"github.com/clusterregistry/operator/hack/cluster/image"
	"github.com/clusterregistry/operator/hack/product"
)

var out = filepath.Dir(product.ImageList)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	repository := os.Getenv("IMAGE_REPOSITORY")
	if repository == "" {
		repository = image.LocalRepository
	}
	stamp, err := product.ReadStamp(ctx, ".")
	if err != nil {
		return err
	}
	programs := product.WithImage()
	if err := product.Build(ctx, ".", filepath.Join(out, "programs"), runtime.GOARCH, stamp, programs...); err != nil {
		return err
	}
	var all []product.Image
	for _, p := range programs {
		b, err := packProgram(repository, p, stamp, filepath.Join(out, "programs"))
		if err != nil {
			return err
		}
		all = append(all, b)
	}
	for _, images := range []func(context.Context, string) ([]product.Image, error){releaseImages, olderOperatorImage, etcdImages} {
		more, err := images(ctx, repository)
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	return report(all)
}

// etcdImages packs etcd with its two tools, under the name and in the shape
// that a release uses in production: the server is on $PATH, there is no shell.
func etcdImages(ctx context.Context, repository string) ([]product.Image, error) {
	cache, err := components.DefaultCache()
	if err != nil {
		return nil, err
	}
	builder := components.Builder{Source: "hack/cluster/components", Cache: cache, Log: os.Stdout}
	var all []product.Image
	for _, version := range components.EtcdVersions {
		etcd := components.Etcd(version)
		dir, err := builder.Ensure(ctx, etcd)
		if err != nil {
			return nil, err
		}
		var programs []string
		for _, name := range slices.Sorted(maps.Keys(etcd.Packages)) {
			programs = append(programs, filepath.Join(dir, name))
		}
		b, err := pack(repository, "etcd", version, product.Stamp{Version: version}, []string{"/usr/local/bin/etcd"}, programs...)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// packProgram packs a program that was built into dir.
func packProgram(repository string, p product.Program, stamp product.Stamp, dir string) (product.Image, error) {
	return pack(repository, p.Name, stamp.Version, stamp, []string{"/usr/local/bin/" + p.Name}, filepath.Join(dir, p.Name))
}

func pack(repository, name, tag string, stamp product.Stamp, entrypoint []string, programs ...string) (product.Image, error) {
	b := product.Image{Name: name, Tag: tag, Reference: repository + "/" + name + ":" + tag, Archive: filepath.Join(out, name+"-"+tag+".tar"), Commit: stamp.Commit}
	labels := map[string]string{"org.opencontainers.image.title": name, "org.opencontainers.image.version": stamp.Version}
	if stamp.Commit != "" {
		labels["org.opencontainers.image.revision"] = stamp.Commit
	}
	digests, err := image.WriteArchive(b.Archive, image.Spec{Reference: b.Reference, Programs: programs, Entrypoint: entrypoint, Labels: labels})
	if err != nil {
		return product.Image{}, err
	}
	b.Digest = digests[0].String()
	return b, nil
}

// report writes images.json, removes archives of earlier builds and prints the list.
func report(all []product.Image) error {
	archives, err := filepath.Glob(filepath.Join(out, "*.tar"))
	if err != nil {
		return err
	}
	for _, path := range archives {
		if !slices.ContainsFunc(all, func(b product.Image) bool { return b.Archive == path }) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	list, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "images.json"), append(list, '\n'), 0o644); err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, b := range all {
		fmt.Fprintf(table, "%s\t%s\n", b.Reference, b.Digest)
	}
	return table.Flush()
}

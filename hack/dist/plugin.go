package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/clusterregistry/operator/hack/product"
)

// plugin is the plugin for kubectl, compiled for the computers of people.
type plugin struct {
	compiled
	program product.Program
	// places are the folders that it is in, by platform; nil when it was not compiled.
	places map[product.Platform]string
}

// platforms returns those that it was compiled for, in the order of Desktops.
func (p plugin) platforms() []product.Platform {
	if p.places == nil {
		return nil
	}
	return product.Desktops
}

// archive returns the name of the archive for a platform.
func (p plugin) archive(platform product.Platform) string {
	return fmt.Sprintf("%s-%s-%s.tar.gz", p.program.Name, p.tag, platform)
}

// compilePlugin compiles the plugin of a checkout for all platforms, into folders
// below out.
func compilePlugin(ctx context.Context, source, out string, stamp product.Stamp, program product.Program) (plugin, error) {
	absolute, err := filepath.Abs(out) // the compiler works in the source
	if err != nil {
		return plugin{}, err
	}
	made, err := ours(program, stamp, nil)
	if err != nil {
		return plugin{}, err
	}
	p := plugin{compiled: made, program: program, places: map[product.Platform]string{}}
	for _, platform := range product.Desktops {
		fmt.Printf("  build %s %s for %s\n", program.Name, stamp.Version, platform)
		p.places[platform] = filepath.Join(absolute, platform.String())
		if err := product.BuildFor(ctx, source, p.places[platform], platform, stamp, program); err != nil {
			return plugin{}, err
		}
	}
	return p, nil
}

// pluginDir is where the plugin's archives and its manifest are.
const pluginDir = "plugin"

// license is the file that every archive has beside the program: krew's index takes no
// plugin without.
const license = "LICENSE"

// writePlugin writes an archive with the plugin for each platform.
func writePlugin(_ context.Context, r *release, dir string) error {
	out := filepath.Join(dir, pluginDir)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	r.archives = map[product.Platform]string{}
	for _, platform := range r.plugin.platforms() {
		name, file := filepath.Join(out, r.plugin.archive(platform)), platform.File(r.plugin.program)
		err := writeArchive(name, r.plugin.created, []packed{
			{license, filepath.Join(r.source, license), 0o644},
			{file, filepath.Join(r.plugin.places[platform], file), 0o755},
		})
		if err != nil {
			return err
		}
		if r.archives[platform], err = sum(name); err != nil {
			return err
		}
	}
	return nil
}

// packed is a file in an archive.
type packed struct {
	name, path string
	mode       int64
}

// writeArchive writes files, all of one date, as a compressed tar archive.
func writeArchive(name string, date time.Time, files []packed) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	compressed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		content, err := os.ReadFile(f.path)
		if err != nil {
			return err
		}
		if err := archive.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(content)), ModTime: date, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

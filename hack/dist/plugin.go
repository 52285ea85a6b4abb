package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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

// completion returns the file by which kubectl completes the plugin's commands. It is no link to
// the program, because krew refuses an archive with a link.
func (p plugin) completion() packed {
	name := strings.Replace(p.program.Name, "kubectl-", "kubectl_complete-", 1)
	return packed{name: name, content: fmt.Sprintf("#!/bin/sh\nexec %s __complete \"$@\"\n", p.program.Name), mode: 0o755}
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
		files := []packed{
			{name: license, path: filepath.Join(r.source, license), mode: 0o644},
			{name: file, path: filepath.Join(r.plugin.places[platform], file), mode: 0o755},
		}
		if platform.OS != "windows" { // which does not run it
			files = append(files, r.plugin.completion())
		}
		if err := writeArchive(name, r.plugin.created, files); err != nil {
			return err
		}
		sum, err := sum(name)
		if err != nil {
			return err
		}
		r.archives[platform] = sum
	}
	return nil
}

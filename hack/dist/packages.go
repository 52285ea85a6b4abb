package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/clusterregistry/operator/hack/product"
)

// The texts of a package, in each format.
const (
	maintainer  = "The Cluster Registry authors <maintainers@clusterregistry.io>"
	summary     = "kubectl plugin that shows and drives cluster registries"
	description = `The plugin works with the registries of the Cluster Registry Operator, the
list of clusters that multi-cluster tools share. Run it as kubectl registry.`
)

// linuxPackage is the plugin as a package of a Linux distribution.
type linuxPackage struct {
	name string
	// version is without the v of a tag, and with a tilde before what precedes a release, so
	// that package managers sort it before the release.
	version string
	// arch is Go's name of the architecture.
	arch string
	date time.Time
	// files are the program and what is beside it, by their full names.
	files []packed
	// license is the path of the license's text.
	license string
}

// formats write a package, by the ending of its name.
var formats = []struct {
	ending string
	bytes  func(linuxPackage) ([]byte, error)
}{{".deb", linuxPackage.deb}, {".rpm", linuxPackage.rpm}}

// packageVersion returns the version of a package, in which no hyphen may be.
func packageVersion(tag string) string {
	version, before, is := strings.Cut(strings.TrimPrefix(tag, "v"), "-")
	if is {
		version += "~" + strings.ReplaceAll(before, "-", ".")
	}
	return version
}

// linuxPackage returns the plugin for an architecture of Linux.
func (r *release) linuxPackage(platform product.Platform) linuxPackage {
	p, completion := r.plugin, r.plugin.completion()
	program := path.Join("/usr/bin", p.program.Name)
	completion.name = path.Join("/usr/bin", completion.name)
	return linuxPackage{
		name: p.program.Name, version: packageVersion(p.tag), arch: platform.Arch, date: p.created,
		files:   []packed{{name: program, path: filepath.Join(p.places[platform], platform.File(p.program)), mode: 0o755}, completion},
		license: filepath.Join(r.source, license),
	}
}

// writePackages writes the plugin as packages for distributions of Linux, beside its archives.
func writePackages(_ context.Context, r *release, dir string) error {
	for _, platform := range r.plugin.platforms() {
		if platform.OS != "linux" {
			continue
		}
		for _, format := range formats {
			content, err := format.bytes(r.linuxPackage(platform))
			if err != nil {
				return err
			}
			name := fmt.Sprintf("%s-%s-%s%s", r.plugin.program.Name, r.plugin.tag, platform, format.ending)
			if err := os.WriteFile(filepath.Join(dir, pluginDir, name), content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// deb returns the package for dpkg, which deb(5) describes: a common archive of two compressed tar
// archives. dpkg itself sums the files that it unpacks.
func (p linuxPackage) deb() ([]byte, error) {
	tree, size := []packed{{name: "./"}}, 0
	for _, f := range slices.Concat(p.files, []packed{{name: path.Join("/usr/share/doc", p.name, "copyright"), path: p.license, mode: 0o644}}) {
		content, err := f.read()
		if err != nil {
			return nil, err
		}
		size += (len(content) + 1023) / 1024
		for i, c := range f.name {
			if above := (packed{name: "." + f.name[:i+1]}); c == '/' && !slices.ContainsFunc(tree, func(f packed) bool { return f.name == above.name }) {
				tree = append(tree, above)
			}
		}
		f.name = "." + f.name
		tree = append(tree, f)
	}
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\nSuggests: kubectl\nSection: utils\nPriority: optional\nHomepage: %s\nDescription: %s\n %s\n",
		p.name, p.version, p.arch, maintainer, size, homepage, summary, strings.ReplaceAll(description, "\n", "\n "))
	out := bytes.NewBufferString("!<arch>\n")
	member(out, "debian-binary", p.date, []byte("2.0\n"))
	for _, part := range []struct {
		name  string
		files []packed
	}{
		{"control.tar.gz", []packed{{name: "./"}, {name: "./control", content: control, mode: 0o644}}},
		{"data.tar.gz", tree},
	} {
		var content bytes.Buffer
		if err := pack(&content, p.date, part.files); err != nil {
			return nil, err
		}
		member(out, part.name, p.date, content.Bytes())
	}
	return out.Bytes(), nil
}

// member adds a file to a common archive, ar(5).
func member(archive *bytes.Buffer, name string, date time.Time, content []byte) {
	fmt.Fprintf(archive, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", name, date.Unix(), 0, 0, 0o100644, len(content))
	archive.Write(content)
	if len(content)%2 == 1 {
		archive.WriteByte('\n')
	}
}

package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"golang.org/x/mod/semver"
)

// noAssertion is SPDX for what nobody looked into.
const noAssertion = "NOASSERTION"

// writeMaterials writes an SPDX document (2.3, JSON) for each program of each
// image and architecture, and for the plugin: the modules that the program says it was linked from.
func writeMaterials(_ context.Context, r *release, dir string) error {
	out := filepath.Join(dir, "sbom")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, c := range r.images {
		for _, arch := range architectures {
			for _, program := range c.programs {
				name := fmt.Sprintf("%s-%s-linux-%s", program, c.tag, arch)
				if c.dirs == nil {
					if err := r.published.copy(filepath.Join("sbom", name+".spdx.json"), dir); err != nil {
						return err
					}
					continue
				}
				if err := writeDocument(out, name, filepath.Join(c.dirs[arch], program), "/usr/local/bin/"+program, c); err != nil {
					return err
				}
			}
		}
	}
	for _, platform := range r.plugin.platforms() {
		file := platform.File(r.plugin.program)
		name := fmt.Sprintf("%s-%s-%s", r.plugin.program.Name, r.plugin.tag, platform)
		if err := writeDocument(out, name, filepath.Join(r.plugin.places[platform], file), file, r.plugin.compiled); err != nil {
			return err
		}
	}
	return nil
}

// writeDocument writes the SPDX document of the program at path, which is shipped as
// a file.
func writeDocument(out, name, path, file string, c compiled) error {
	document, err := materials(name, path, file, c)
	if err != nil {
		return err
	}
	var content bytes.Buffer
	if err := spdxjson.Write(document, &content, spdxjson.Indent("  "), spdxjson.EscapeHTML(false)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, name+".spdx.json"), content.Bytes(), 0o644)
}

// materials describes the program at path. The document's name and the program's
// sum make it unique, as SPDX demands; its date is that of the source.
func materials(name, path, file string, c compiled) (*spdx.Document, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("what %s is built from: %w", path, err)
	}
	sum, err := sum(path)
	if err != nil {
		return nil, err
	}
	created := c.created
	if created.IsZero() {
		created = time.Unix(0, 0)
	}
	program := &spdx.Package{
		PackageName:             filepath.Base(path),
		PackageSPDXIdentifier:   "program",
		PackageVersion:          c.tag,
		PackageFileName:         file,
		PackageDownloadLocation: noAssertion,
		PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: sum}},
		PackageSourceInfo:       "Go package " + info.Path,
		PrimaryPackagePurpose:   "APPLICATION",
	}
	if c.commit != "" {
		program.PackageSourceInfo += " at commit " + c.commit
	}
	document := &spdx.Document{
		SPDXVersion:       spdx.Version,
		DataLicense:       spdx.DataLicense,
		SPDXIdentifier:    "DOCUMENT",
		DocumentName:      name,
		DocumentNamespace: "https://github.com/clusterregistry/operator/spdx/" + name + "-" + sum,
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Organization", Creator: "clusterregistry"}, {CreatorType: "Tool", Creator: "hack/dist"}},
			Created:  created.UTC().Format(time.RFC3339),
		},
		Packages:      []*spdx.Package{program},
		Relationships: []*spdx.Relationship{relation("DOCUMENT", common.TypeRelationshipDescribe, "program")},
	}
	add := func(p *spdx.Package) {
		document.Packages = append(document.Packages, p)
		document.Relationships = append(document.Relationships, relation("program", common.TypeRelationshipDependsOn, p.PackageSPDXIdentifier))
	}
	add(module("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "", "go"))
	for i, dependency := range info.Deps {
		add(dependencyPackage(i, source(dependency, c.tag)))
	}
	return document, nil
}

// source returns what a dependency of a program was compiled from. In the place of a
// module of this repository the go command names a directory: that is the module as it is
// in the program's own version.
func source(dependency *debug.Module, tag string) *debug.Module {
	switch {
	case dependency.Replace == nil:
		return dependency
	case !semver.IsValid(dependency.Replace.Version):
		return &debug.Module{Path: dependency.Path, Version: tag}
	}
	return dependency.Replace
}

func dependencyPackage(i int, m *debug.Module) *spdx.Package {
	return module(m.Path, m.Version, m.Sum, fmt.Sprintf("module-%d", i))
}

// module describes a Go module. Its sum, where it has one, is that of go.sum: over
// the names and sums of its files, so it is not the checksum of any file.
func module(path, version, sum, id string) *spdx.Package {
	p := &spdx.Package{
		PackageName:             path,
		PackageSPDXIdentifier:   common.ElementID(id),
		PackageVersion:          version,
		PackageDownloadLocation: noAssertion,
		PrimaryPackagePurpose:   "LIBRARY",
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B"),
		}},
	}
	if sum != "" {
		p.PackageSourceInfo = "go.sum: " + sum
	}
	return p
}

func relation(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.DocElementID{ElementRefID: from}, Relationship: kind, RefB: common.DocElementID{ElementRefID: to}}
}

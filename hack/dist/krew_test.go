package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/hack/product"
)

// unpack returns the files of an archive with their modes.
func unpack(t *testing.T, content string) (map[string][]byte, map[string]int64) {
	t.Helper()
	compressed, err := gzip.NewReader(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files, modes := map[string][]byte{}, map[string]int64{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
		modes[header.Name] = header.Mode
		if header.Typeflag != tar.TypeReg {
			t.Errorf("%s is of type %q: krew refuses what is neither a file nor a directory", header.Name, header.Typeflag)
		}
	}
}

// TestKrew holds the manifest of a release to krew's format, as krew itself checks it,
// and to the archives that it names: each is for its platform, and has what is taken
// out of it.
func TestKrew(t *testing.T) {
	release := smallFiles(t)
	plugin := krewPlugin{}
	if err := yaml.UnmarshalStrict([]byte(release["plugin/cluster-registry.yaml"]), &plugin); err != nil {
		t.Fatal(err)
	}
	spec := plugin.Spec
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Metadata.Name != "cluster-registry" {
		t.Errorf("it is %s %s %s", plugin.APIVersion, plugin.Kind, plugin.Metadata.Name)
	}
	if spec.Version != "v0.2.0" || !semver.IsValid(spec.Version) || spec.ShortDescription == "" || strings.Contains(spec.ShortDescription, "\n") || len(spec.ShortDescription) > 50 || strings.HasSuffix(spec.ShortDescription, ".") {
		t.Errorf("it has the version %q and the short description %q", spec.Version, spec.ShortDescription)
	}
	digits := regexp.MustCompile(`^[a-f0-9]{64}$`)
	if len(spec.Platforms) != 6 {
		t.Fatalf("it has %d platforms", len(spec.Platforms))
	}
	seen := map[product.Platform]bool{}
	for _, platform := range spec.Platforms {
		of := product.Platform{OS: platform.Selector.MatchLabels["os"], Arch: platform.Selector.MatchLabels["arch"]}
		seen[of] = true
		if len(platform.Selector.MatchLabels) != 2 || len(platform.Selector.MatchExpressions) != 0 {
			t.Errorf("%s: krew knows the labels os and arch: %v", of, platform.Selector)
		}
		name, found := strings.CutPrefix(platform.URI, "https://github.com/clusterregistry/operator/releases/download/v0.2.0/")
		archive := release["plugin/"+name]
		if !found || archive == "" || name != "kubectl-registry-v0.2.0-"+of.String()+".tar.gz" {
			t.Errorf("%s: %s is no file of the release", of, platform.URI)
			continue
		}
		sums := release[sumsFile]
		if !digits.MatchString(platform.SHA256) || !strings.Contains(sums, platform.SHA256+"  plugin/"+name+"\n") {
			t.Errorf("%s: the sum %q is not the one in %s", of, platform.SHA256, sumsFile)
		}
		content, modes := unpack(t, archive)
		taken := map[string]bool{}
		for _, file := range platform.Files {
			if file.To != "." || content[file.From] == nil {
				t.Errorf("%s: %s is not in the archive, which has %v", of, file.From, modes)
			}
			taken[file.From] = true
		}
		const completion = "kubectl_complete-registry"
		wantsCompletion := of.OS != "windows"
		if string(content[completion]) == "#!/bin/sh\nexec kubectl-registry __complete \"$@\"\n" != wantsCompletion || wantsCompletion && modes[completion] != 0o755 {
			t.Errorf("%s: %s is %q, of mode %o", of, completion, content[completion], modes[completion])
		}
		delete(content, completion)
		if !taken[platform.Bin] || !taken["LICENSE"] || taken[completion] || len(content) != 2 || modes[platform.Bin] != 0o755 || !bytes.Contains(content["LICENSE"], []byte("Apache License")) {
			t.Errorf("%s: krew gets %v of %v, and runs %s", of, taken, modes, platform.Bin)
		}
		if strings.HasSuffix(platform.Bin, ".exe") == wantsCompletion {
			t.Errorf("%s: the program is %s", of, platform.Bin)
		}
		info, err := buildinfo.Read(bytes.NewReader(content[platform.Bin]))
		if err != nil {
			t.Errorf("%s: %v", of, err)
			continue
		}
		built := map[string]string{}
		for _, setting := range info.Settings {
			built[setting.Key] = setting.Value
		}
		if built["GOOS"] != of.OS || built["GOARCH"] != of.Arch || built["CGO_ENABLED"] != "0" {
			t.Errorf("%s: the program is for %s-%s, with cgo %s", of, built["GOOS"], built["GOARCH"], built["CGO_ENABLED"])
		}
		if document := release[filepath.Join("sbom", "kubectl-registry-v0.2.0-"+of.String()+".spdx.json")]; !strings.Contains(document, `"packageFileName": "`+platform.Bin+`"`) {
			t.Errorf("%s: there is no list of materials", of)
		}
	}
	for _, os := range []string{"darwin", "linux", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			if !seen[product.Platform{OS: os, Arch: arch}] {
				t.Errorf("%s on %s has no archive", os, arch)
			}
		}
	}
}

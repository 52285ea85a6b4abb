package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/clusterregistry/operator/hack/attest"
	"github.com/clusterregistry/operator/hack/chart/content"
)

var built = attest.Build{Source: source, Ref: "refs/tags/v0.2.0", Commit: "0123", Builder: "https://example.com/builder", Version: "v0.2.0"}

// published publishes a small release, and returns what verify needs.
func published(t *testing.T) (*place, *release, *ecdsa.PrivateKey, name.Digest) {
	t.Helper()
	p, key := newPlace(t), newKey(t)
	r := p.read(t, small(t, "program of "))
	chart, err := publish(t.Context(), r, keySigner{key}, built, []byte("owners: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.verify(t.Context(), &key.PublicKey, chart, built); err != nil {
		t.Fatalf("as it was published: %v", err)
	}
	return p, r, key, chart
}

// TestTampering changes one thing of what is published, or of the directory, each time.
func TestTampering(t *testing.T) {
	first := func(part string) func(p *place, r *release) {
		return func(p *place, _ *release) {
			p.change = func(_ string, content []byte) []byte {
				if at := bytes.Index(content, []byte(part)); at >= 0 {
					content = slices.Clone(content)
					content[at] ^= 1
				}
				return content
			}
		}
	}
	file := func(name, old, new string) func(*place, *release) {
		return func(_ *place, r *release) {
			path := filepath.Join(r.dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(new), 1), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		what   string
		change func(p *place, r *release)
		says   string
	}{
		{"a byte of the image's configuration", first(`amd64","`), "clusterregistry-operator@sha256:"},
		{"a byte of a layer", func(p *place, r *release) {
			layer := layerOf(t, r)
			p.change = func(path string, content []byte) []byte {
				if strings.HasSuffix(path, layer) {
					content = slices.Clone(content)
					content[len(content)/2] ^= 1
				}
				return content
			}
		}, "validating layers"},
		{"a byte of a statement", first(`"payload":"`), "error verifying sha256 checksum"},
		{"a list of materials", file("sbom/operator-arm64.spdx.json", `"arm64"`, `"other"`), "the spdxjson of"},
		{"a sum", file(sumsFile, "images.txt", "images.txd"), "the file was changed"},
		{"the chart", file(content.ArchiveName("v0.2.0"), "\x1f\x8b", "\x1f\x8c"), "has the sum"},
	} {
		t.Run(test.what, func(t *testing.T) {
			p, r, key, chart := published(t)
			test.change(p, r)
			err := r.verify(t.Context(), &key.PublicKey, chart, built)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want that %s", err, test.says)
			}
		})
	}
}

// layerOf returns the digest of a layer of the release's image.
func layerOf(t *testing.T, r *release) string {
	t.Helper()
	manifest, err := r.images[0].index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	built, err := r.images[0].index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := built.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[len(layers)-1].Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// TestOthers verifies with another key, and another provenance.
func TestOthers(t *testing.T) {
	_, r, key, chart := published(t)
	if err := r.verify(t.Context(), &newKey(t).PublicKey, chart, built); err == nil || !strings.Contains(err.Error(), "another key has signed it") {
		t.Errorf("with another key: %v", err)
	}
	other := built
	other.Commit = "4567"
	if err := r.verify(t.Context(), &key.PublicKey, chart, other); err == nil || !strings.Contains(err.Error(), "slsaprovenance1") {
		t.Errorf("of another commit: %v", err)
	}
}

// TestTagsStay publishes a release again, which changes nothing, and then another one of the
// same version.
func TestTagsStay(t *testing.T) {
	p, r, key, _ := published(t)
	if _, err := publish(t.Context(), r, keySigner{key}, built, nil); err != nil {
		t.Errorf("again: %v", err)
	}
	other := p.read(t, small(t, "another program of "))
	if _, err := publish(t.Context(), other, keySigner{key}, built, nil); err == nil || !strings.Contains(err.Error(), "is published as sha256:") {
		t.Errorf("another one: %v", err)
	}
}

// TestIncomplete reads releases that miss something, or have something else.
func TestIncomplete(t *testing.T) {
	for what, change := range map[string]func(dir string) error{
		"is no release, which": func(dir string) error { return os.Remove(filepath.Join(dir, "images.txt")) },
		"and no archive in":    func(dir string) error { return os.RemoveAll(filepath.Join(dir, "images")) },
		"has the charts":       func(dir string) error { return os.Remove(filepath.Join(dir, content.ArchiveName("v0.2.0"))) },
		"images.txt says sha256:12": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "images.txt"), []byte("registry.example/any/clusterregistry-operator:v0.2.0@sha256:12\n"), 0o600)
		},
	} {
		dir := small(t, "program of ")
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := readRelease(dir, "registry.example/team"); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want that it %s", err, what)
		}
	}
	p := newPlace(t)
	dir := small(t, "program of ")
	if err := os.Remove(filepath.Join(dir, "sbom", "operator-arm64.spdx.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := publish(t.Context(), p.read(t, dir), keySigner{newKey(t)}, built, nil); err == nil || !strings.Contains(err.Error(), "/sbom is about usr/local/bin/clusterregistry-operator") {
		t.Errorf("without a list of materials: %v", err)
	}
}

// TestRehearse publishes a release as "make release REHEARSE=1" does, and verifies the
// signature of the sums from the files alone, as "openssl dgst -verify" of RELEASE.md does.
func TestRehearse(t *testing.T) {
	dir := small(t, "program of ")
	if err := rehearse(t.Context(), dir, built, nil); err != nil {
		t.Fatal(err)
	}
	content := map[string][]byte{}
	for _, name := range []string{"rehearsal.pub", "SHA256SUMS.sig", "SHA256SUMS"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		content[name] = text
	}
	block, rest := pem.Decode(content["rehearsal.pub"])
	if block == nil || block.Type != "PUBLIC KEY" || len(rest) > 0 {
		t.Fatalf("rehearsal.pub is no public key: %s", content["rehearsal.pub"])
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, is := parsed.(*ecdsa.PublicKey)
	sum := sha256.Sum256(content["SHA256SUMS"])
	if !is || !ecdsa.VerifyASN1(key, sum[:], content["SHA256SUMS.sig"]) {
		t.Errorf("the key %T of rehearsal.pub has not signed SHA256SUMS", parsed)
	}
}

// TestCosign has a script in the place of cosign, which writes what it is called with.
func TestCosign(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "cosign")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\" >>"+dir+"/calls\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := newPlace(t).read(t, small(t, "program of "))
	chart, err := publish(t.Context(), r, cosign{program, dir}, built, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for _, artifact := range []name.Digest{chart, r.images[0].reference()} {
		for _, want := range []string{"sign --yes ", "attest --yes --type slsaprovenance1 --predicate " + dir + "/predicate.json "} {
			if !strings.Contains(string(calls), want+artifact.String()+"\n") {
				t.Errorf("cosign is not called with %s%s", want, artifact)
			}
		}
	}
	if got := strings.Count(string(calls), "attest --yes --type spdxjson"); got != 2 {
		t.Errorf("cosign signs %d lists of materials, want 2: %s", got, calls)
	}
	if !strings.Contains(string(calls), "sign-blob --yes --bundle "+r.dir+"/SHA256SUMS.sigstore.json "+r.dir+"/SHA256SUMS\n") {
		t.Errorf("cosign does not sign the sums: %s", calls)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho no identity; exit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := publish(t.Context(), r, cosign{program, dir}, built, nil); err == nil || !strings.Contains(err.Error(), "no identity") {
		t.Errorf("when cosign fails: %v", err)
	}
}

// TestBuiltBy names the workflow, where there is one.
func TestBuiltBy(t *testing.T) {
	by := builtBy("v0.2.0", "0123", func(string) string { return "" })
	if by.Builder != attest.BuildType || by.Ref != "refs/tags/v0.2.0" || by.Commit != "0123" || by.Invocation != "" {
		t.Errorf("by hand: %+v", by)
	}
	by = builtBy("v0.2.0", "0123", func(name string) string {
		return map[string]string{"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "a/b", "GITHUB_REF": "refs/tags/v0.2.0", "GITHUB_WORKFLOW_REF": "a/b/.github/workflows/release.yaml@refs/tags/v0.2.0", "GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "1"}[name]
	})
	if by.Builder != "https://github.com/a/b/.github/workflows/release.yaml@refs/tags/v0.2.0" || by.Source != "https://github.com/a/b" || by.Invocation != "https://github.com/a/b/actions/runs/7/attempts/1" {
		t.Errorf("by a workflow: %+v", by)
	}
}

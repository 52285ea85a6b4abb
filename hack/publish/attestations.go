package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/clusterregistry/operator/hack/attest"
)

// attestation is what is said of an artifact.
type attestation struct {
	artifact  name.Digest
	kind      attest.Kind
	predicate []byte
}

// attestations returns all that is said of a release: who published each image and the
// chart, of which source they were built, and, for each architecture, what the programs in
// an image were linked from.
func (r *release) attestations(chart name.Digest, build attest.Build) ([]attestation, error) {
	provenance, err := build.Predicate()
	if err != nil {
		return nil, err
	}
	documents, err := r.documents()
	if err != nil {
		return nil, err
	}
	of := func(artifact name.Digest) []attestation {
		return []attestation{{artifact, attest.Signature, []byte("{}")}, {artifact, attest.Provenance, provenance}}
	}
	all := of(chart)
	for _, image := range r.images {
		all = append(all, of(image.reference())...)
		manifest, err := image.index.IndexManifest()
		if err != nil {
			return nil, err
		}
		for _, entry := range manifest.Manifests {
			built, err := image.index.Image(entry.Digest)
			if err != nil {
				return nil, err
			}
			programs, err := programs(built)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", image.tag, err)
			}
			for file, sum := range programs {
				if documents[sum] == nil {
					return nil, fmt.Errorf("no document in %s/sbom is about %s of %s for %s, whose sum is %s", r.dir, file, image.tag, entry.Platform, sum)
				}
				all = append(all, attestation{image.tag.Digest(entry.Digest.String()), attest.Materials, documents[sum]})
			}
		}
	}
	return all, nil
}

// documents returns the lists of materials by the sum of the program that each is about.
func (r *release) documents() (map[string][]byte, error) {
	files, err := filepath.Glob(filepath.Join(r.dir, "sbom", "*.spdx.json"))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var document struct {
			Packages []struct {
				ID        string `json:"SPDXID"`
				Checksums []struct {
					Value string `json:"checksumValue"`
				} `json:"checksums"`
			} `json:"packages"`
		}
		if err := json.Unmarshal(content, &document); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(document.Packages) == 0 || document.Packages[0].ID != "SPDXRef-program" || len(document.Packages[0].Checksums) != 1 {
			return nil, fmt.Errorf("%s does not say which program it is about", file)
		}
		out[document.Packages[0].Checksums[0].Value] = content
	}
	return out, nil
}

// programs returns the sums of the programs in an image, by their paths.
func programs(image v1.Image) (out map[string]string, err error) {
	files := mutate.Extract(image)
	defer func() { err = errors.Join(err, files.Close()) }()
	out = map[string]string{}
	for reader := tar.NewReader(files); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if path.Dir(path.Clean("/"+header.Name)) != "/usr/local/bin" || header.Typeflag != tar.TypeReg {
			continue
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, reader); err != nil {
			return nil, err
		}
		out[header.Name] = hex.EncodeToString(sum.Sum(nil))
	}
}

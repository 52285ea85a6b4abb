// Package image builds container images without a daemon: an empty base with
// a user, CA certificates and static programs. The same inputs give the same
// digest on any machine: times, owners and order in the layers are fixed.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Spec says what an image holds.
type Spec struct {
	// Reference is the full name with its tag.
	Reference string
	// Programs are files on this machine, placed in /usr/local/bin under their own names.
	Programs []string
	// Files are the contents of more files, by their whole paths in the image
	// without the first slash. Those in a folder bin can be run.
	Files map[string][]byte
	// Entrypoint is the command that a container runs.
	Entrypoint []string
	// Labels are OCI annotations such as org.opencontainers.image.revision.
	Labels map[string]string
	// Architecture is one of Go's names; empty means this machine's.
	Architecture string
	// Created is when the source was committed; zero means that nobody knows.
	Created time.Time
}

// User is the numeric user and group of every image's processes, numeric so
// that Kubernetes can verify runAsNonRoot.
const User = "65532:65532"

// LocalRepository is the registry part of images that exist on local clusters
// only.
const LocalRepository = "registry.localhost"

// binDir is where programs are placed.
const binDir = "usr/local/bin"

// Build returns the image in Docker's format, which archives have.
func Build(spec Spec) (v1.Image, error) { return build(spec, types.DockerLayer) }

// build returns the image with layers of the given type.
func build(spec Spec, layers types.MediaType) (v1.Image, error) {
	base, err := layer(baseFiles(), layers)
	if err != nil {
		return nil, err
	}
	programs := []file{{path: "usr", dir: true}, {path: "usr/local", dir: true}, {path: binDir, dir: true}}
	for _, program := range slices.Sorted(slices.Values(spec.Programs)) {
		content, err := os.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", spec.Reference, err)
		}
		programs = append(programs, file{path: filepath.Join(binDir, filepath.Base(program)), content: content, mode: 0o755})
	}
	top, err := layer(append(programs, spec.files()...), layers)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, base, top)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", cmp.Or(spec.Architecture, runtime.GOARCH), v1.Time{Time: spec.Created}
	config.Config = v1.Config{
		User:       User,
		Entrypoint: spec.Entrypoint,
		WorkingDir: "/",
		Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE=/" + caBundle},
		Labels:     spec.Labels,
	}
	return mutate.ConfigFile(image, config)
}

// files returns the entries of Files, each folder before what is in it.
func (s Spec) files() []file {
	var out []file
	made := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		for i, r := range name {
			if r == '/' && !made[name[:i]] {
				made[name[:i]] = true
				out = append(out, file{path: name[:i], dir: true})
			}
		}
		mode := int64(0o644)
		if path.Base(path.Dir(name)) == "bin" {
			mode = 0o755
		}
		out = append(out, file{path: name, content: s.Files[name], mode: mode})
	}
	return out
}

// WriteArchive builds every image and writes them into one archive that
// "ctr images import", "docker load" and "kind load image-archive" read. It
// returns the digest of each, in the order of specs. A failed write leaves no
// archive behind.
func WriteArchive(path string, specs ...Spec) ([]v1.Hash, error) {
	images := map[name.Tag]v1.Image{}
	digests := make([]v1.Hash, 0, len(specs))
	for _, spec := range specs {
		tag, err := name.NewTag(spec.Reference, name.StrictValidation)
		if err != nil {
			return nil, fmt.Errorf("image reference %q: %w", spec.Reference, err)
		}
		image, err := Build(spec)
		if err != nil {
			return nil, err
		}
		digest, err := image.Digest()
		if err != nil {
			return nil, err
		}
		images[tag] = image
		digests = append(digests, digest)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	partial := path + ".partial"
	defer func() { _ = os.Remove(partial) }()
	if err := tarball.MultiWriteToFile(partial, images); err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return digests, os.Rename(partial, path)
}

// layer packs files into a layer with fixed times and owners.
func layer(files []file, kind types.MediaType) (v1.Layer, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, f := range files {
		if err := w.WriteHeader(f.header()); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	// Local loads dominate; BestSpeed costs a tenth in size and saves most of the time.
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	}, tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithMediaType(kind))
}

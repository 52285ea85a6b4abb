package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"sigs.k8s.io/yaml"
)

// release is the directory that "make release" has written, as it is published.
type release struct {
	dir string
	// repository is what precedes the names of its images where they are published.
	repository string
	images     []image
	chart      chart
	// scratch has the images, unpacked.
	scratch string
}

// image is one of a release, for all architectures.
type image struct {
	tag    name.Tag
	index  v1.ImageIndex
	digest v1.Hash
}

// reference is the image by its digest.
func (i image) reference() name.Digest { return i.tag.Digest(i.digest.String()) }

// chart is the chart for Helm.
type chart struct {
	name, version string
	// metadata is Chart.yaml, as JSON.
	metadata, archive []byte
}

// readRelease reads the directory of a release, whose images are published as REPOSITORY/NAME:TAG;
// an empty repository is the one that images.txt names. The release must be closed.
func readRelease(dir, repository string) (*release, error) {
	list, err := os.ReadFile(filepath.Join(dir, "images.txt"))
	if err != nil {
		return nil, fmt.Errorf("%s is no release, which \"make release\" writes: %w", dir, err)
	}
	r := &release{dir: dir, repository: repository}
	listed := map[string]string{}
	for line := range strings.Lines(string(list)) {
		reference, digest, _ := strings.Cut(strings.TrimSpace(line), "@")
		at := strings.LastIndex(reference, "/")
		listed[reference[at+1:]] = digest
		if r.repository == "" {
			r.repository = reference[:max(at, 0)]
		}
	}
	if r.scratch, err = os.MkdirTemp("", "publish-"); err != nil {
		return nil, err
	}
	if err := errors.Join(r.readImages(listed), r.readChart()); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *release) close() error { return os.RemoveAll(r.scratch) }

// readImages reads the archives. Those that images.txt lists have the digest there.
func (r *release) readImages(listed map[string]string) error {
	archives, err := filepath.Glob(filepath.Join(r.dir, "images", "*.tar"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		of, err := r.readImage(archive)
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		short := of.tag.RepositoryStr()[strings.LastIndex(of.tag.RepositoryStr(), "/")+1:] + ":" + of.tag.TagStr()
		if want := listed[short]; want != "" && want != of.digest.String() {
			return fmt.Errorf("%s has the digest %s, and images.txt says %s; make the release again", archive, of.digest, want)
		}
		delete(listed, short)
		r.images = append(r.images, of)
	}
	for missing := range listed {
		return fmt.Errorf("images.txt lists %s, and no archive in %s/images has it", missing, r.dir)
	}
	return nil
}

// readImage unpacks an archive. What it contains is compared with its digests when it is
// pushed.
func (r *release) readImage(archive string) (image, error) {
	dir := filepath.Join(r.scratch, filepath.Base(archive))
	if err := unpack(archive, dir); err != nil {
		return image{}, err
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return image{}, err
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		return image{}, fmt.Errorf("it does not have one image: %w", err)
	}
	entry := manifest.Manifests[0]
	named, err := name.NewTag(entry.Annotations["io.containerd.image.name"])
	if err != nil {
		return image{}, err
	}
	of := image{digest: entry.Digest}
	path := named.RepositoryStr()
	if of.tag, err = name.NewTag(r.repository + "/" + path[strings.LastIndex(path, "/")+1:] + ":" + named.TagStr()); err != nil {
		return image{}, err
	}
	of.index, err = top.ImageIndex(entry.Digest)
	return of, err
}

// unpack unpacks an archive of files, none of which may be elsewhere than in dir.
func unpack(archive, dir string) (err error) {
	from, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for reader := tar.NewReader(from); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := root.MkdirAll(filepath.Dir(header.Name), 0o755); err != nil {
			return err
		}
		to, err := root.Create(header.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(to, reader)
		if err := errors.Join(err, to.Close()); err != nil {
			return err
		}
	}
}

// readChart reads the chart's archive.
func (r *release) readChart() error {
	archives, err := filepath.Glob(filepath.Join(r.dir, "*.tgz"))
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("%s has the charts %q, want one: %w", r.dir, archives, err)
	}
	if r.chart.archive, err = os.ReadFile(archives[0]); err != nil {
		return err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(r.chart.archive))
	if err != nil {
		return fmt.Errorf("%s: %w", archives[0], err)
	}
	for reader := tar.NewReader(unpacked); ; {
		header, err := reader.Next()
		if err != nil {
			return fmt.Errorf("%s has no Chart.yaml: %w", archives[0], err)
		}
		if strings.Count(header.Name, "/") != 1 || filepath.Base(header.Name) != "Chart.yaml" {
			continue
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			return err
		}
		var metadata struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		}
		if err := yaml.Unmarshal(content, &metadata); err != nil {
			return err
		}
		r.chart.name, r.chart.version = metadata.Name, metadata.Version
		r.chart.metadata, err = yaml.YAMLToJSON(content)
		return err
	}
}

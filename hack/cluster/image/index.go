package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// WriteIndex builds one image for several architectures, a spec for each with
// one and the same reference, and writes it as an archive of an OCI image layout.
// It returns the digest of the index, by which a registry knows the image of
// all architectures. A failed write leaves no archive behind.
func WriteIndex(path string, specs ...Spec) (v1.Hash, error) {
	tag, err := name.NewTag(specs[0].Reference, name.StrictValidation)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("image reference %q: %w", specs[0].Reference, err)
	}
	index, err := buildIndex(specs)
	if err != nil {
		return v1.Hash{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return v1.Hash{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	folder, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return v1.Hash{}, err
	}
	// The first name is for tools that follow the specification, the other for
	// containerd and Docker, which want to know the registry as well.
	names := map[string]string{"org.opencontainers.image.ref.name": tag.TagStr(), "io.containerd.image.name": tag.Name()}
	if err := folder.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return v1.Hash{}, err
	}
	return digest, archive(path, dir)
}

func buildIndex(specs []Spec) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, spec := range specs {
		image, err := build(spec, types.OCILayer)
		if err != nil {
			return nil, err
		}
		image = mutate.ConfigMediaType(mutate.MediaType(image, types.OCIManifestSchema1), types.OCIConfigJSON)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: spec.Architecture}},
		})
	}
	return index, nil
}

// archive packs a folder's files, in the order of their names, with fixed times
// and owners.
func archive(path, dir string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	partial := path + ".partial"
	out, err := os.Create(partial)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(partial) }()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return addFile(w, dir, name)
	})
	if err := errors.Join(err, w.Close(), out.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(partial, path)
}

func addFile(w *tar.Writer, dir, name string) error {
	relative, err := filepath.Rel(dir, name)
	if err != nil {
		return err
	}
	content, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	info, err := content.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(relative), Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.Copy(w, content)
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/clusterregistry/operator/hack/cluster/image"
	"github.com/clusterregistry/operator/hack/install/render"
	"github.com/clusterregistry/operator/hack/product"
)

// release is what is written, and what one artefact tells the next.
type release struct {
	// repository is the registry and path before each image's name.
	repository string
	// source is the top of the repository.
	source    string
	published published
	images    []compiled
	// plugin is the plugin for kubectl, which is not in an image.
	plugin plugin
	// recorded are the digests that the table of the registry's releases has, by name
	// and tag.
	recorded map[string]string
	// rehearse is true when what is made is not published.
	rehearse bool

	// digests are those of the images' indexes, in the order of images.
	digests []string
	// archives are the sums of the plugin's archives, by platform.
	archives map[product.Platform]string
}

// artefact is a part of a release. It writes files below a folder.
type artefact struct {
	name  string
	write func(ctx context.Context, r *release, dir string) error
}

// artefacts are all parts, in the order in which they are written. The bundle needs
// the list of images, the manifest for krew the archives' sums; sums, the last, is about all files.
var artefacts = []artefact{
	{"the images", writeImages},
	{"the list of images", writeImageList},
	{"install.yaml", writeInstall},
	{"the chart", writeChart},
	{"the bundle", writeBundle},
	{"the catalog", writeCatalog},
	{"the plugin for kubectl", writePlugin},
	{"the packages of the plugin", writePackages},
	{"the manifest for krew", writeKrew},
	{"the lists of materials", writeMaterials},
	{"the sums", writeSums},
}

// write writes artefacts into dir, which does not exist and is there only
// when all of it could be written.
func (r *release) write(ctx context.Context, dir string, parts []artefact) error {
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return err
	}
	for _, a := range parts {
		fmt.Printf("  write %s\n", a.name)
		if err := a.write(ctx, r, partial); err != nil {
			return errors.Join(fmt.Errorf("write %s: %w", a.name, err), os.RemoveAll(partial))
		}
	}
	return os.Rename(partial, dir)
}

// reference is the name of an image, without its digest.
func (r *release) reference(c compiled) string { return r.repository + "/" + c.name + ":" + c.tag }

// writeImages writes an OCI image layout of each image, for all architectures.
func writeImages(_ context.Context, r *release, dir string) error {
	for _, c := range r.images {
		file := filepath.Join("images", c.name+"-"+c.tag+".tar")
		if c.dirs == nil {
			if err := r.published.copy(file, dir); err != nil {
				return err
			}
			r.digests = append(r.digests, r.published.digests[r.reference(c)])
			continue
		}
		labels := map[string]string{"org.opencontainers.image.title": c.name, "org.opencontainers.image.version": c.tag}
		if c.commit != "" {
			labels["org.opencontainers.image.revision"] = c.commit
		}
		var specs []image.Spec
		for _, arch := range architectures {
			spec := image.Spec{Reference: r.reference(c), Entrypoint: []string{"/usr/local/bin/" + c.programs[0]}, Labels: labels, Architecture: arch, Created: c.created}
			for _, program := range c.programs {
				spec.Programs = append(spec.Programs, filepath.Join(c.dirs[arch], program))
			}
			specs = append(specs, spec)
		}
		digest, err := image.WriteIndex(filepath.Join(dir, file), specs...)
		if err != nil {
			return err
		}
		r.digests = append(r.digests, digest.String())
	}
	if err := r.asRecorded(); err != nil {
		if !r.rehearse {
			return err
		}
		fmt.Printf("%v\n", err)
	}
	return nil
}

// imageList is the file that lists the images.
const imageList = "images.txt"

// writeImageList writes which images there are, one in each line: what a mirror
// has to hold.
func writeImageList(_ context.Context, r *release, dir string) error {
	var list []byte
	for i, c := range r.images {
		list = fmt.Appendf(list, "%s@%s\n", r.reference(c), r.digests[i])
	}
	return os.WriteFile(filepath.Join(dir, imageList), list, 0o644)
}

// writeInstall writes the operator as one file for kubectl.
func writeInstall(_ context.Context, r *release, dir string) error {
	objects, err := render.Objects(filepath.Join(r.source, render.Base), render.Image{Reference: r.reference(r.images[0]), Digest: r.digests[0], Repository: r.repository})
	if err != nil {
		return err
	}
	content, err := render.YAML(objects)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "install.yaml"), content, 0o644)
}

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/hack/cluster/image"
)

// bundleName is the name of the bundle's image.
const bundleName = "clusterregistry-operator-bundle"

// writeBundle writes the bundle for OLM, which names images by digest, as a folder
// and as an image. It is no program, and so the same on every architecture.
func writeBundle(ctx context.Context, r *release, dir string) error {
	operator := r.images[0]
	folder := filepath.Join(dir, "bundle")
	args := []string{"-out=" + folder, "-version=" + operator.tag, "-repository=" + r.repository,
		"-digests=" + filepath.Join(dir, imageList), "-created-at=" + operator.created.UTC().Format(time.RFC3339)}
	if err := r.runOLM(ctx, "bundle", args...); err != nil {
		return err
	}
	spec := image.Spec{Reference: r.repository + "/" + bundleName + ":" + operator.tag, Files: map[string][]byte{}, Created: operator.created}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		spec.Files[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return err
	}
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(spec.Files["metadata/annotations.yaml"], &metadata); err != nil {
		return err
	}
	spec.Labels = metadata.Annotations
	var specs []image.Spec
	for _, arch := range architectures {
		spec.Architecture = arch
		specs = append(specs, spec)
	}
	_, err = image.WriteIndex(filepath.Join(dir, "images", bundleName+"-"+operator.tag+".tar"), specs...)
	return err
}

// writeCatalog writes the catalog that lists the bundle.
func writeCatalog(ctx context.Context, r *release, dir string) error {
	return r.runOLM(ctx, "publish", "-bundle="+filepath.Join(dir, "bundle"), "-out="+filepath.Join(dir, "catalog"))
}

// runOLM runs a program of hack/olm, which is a module of its own, at the top of
// the repository. Paths among its arguments are absolute, or begin there. The program stays in
// bin/, where "make bundle" builds it as well: it takes longer to link than to run.
func (r *release) runOLM(ctx context.Context, program string, args ...string) error {
	path, err := filepath.Abs(filepath.Join(r.source, "bin", program))
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./"+program)
	build.Dir = filepath.Join(r.source, "hack", "olm")
	run := exec.CommandContext(ctx, path, args...)
	run.Dir = r.source
	for _, cmd := range []*exec.Cmd{build, run} {
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, text)
		}
	}
	return nil
}

// Package content makes the files of the Helm chart from the operator's manifests: what
// the chart installs with its default values is what kustomize makes of them.
package content

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/hack/install/render"
)

const (
	// Name is the chart's.
	Name = "cluster-registry-operator"
	// Directory has the chart's files, from the top of the repository.
	Directory = "chart"
)

// The kustomizations that the chart is made of, beside render.Base.
const (
	narrowBase     = "manifests/operator-namespaced/operator"
	namespaceBase  = "manifests/operator-namespaced/namespace"
	monitoringBase = "manifests/monitoring"
)

// Options say what a chart installs.
type Options struct {
	// Source is the checkout whose operator it is.
	Source string
	// Version is the operator's, beginning with "v"; empty for that in the manifests.
	Version string
	// Repository is what precedes the name of every image; empty for that in the manifests.
	Repository string
	// Digest is that of the operator's image; empty for an image that is named by tag alone.
	Digest string
}

// File is one of a chart.
type File struct {
	// Name has slashes, and begins in the chart's directory.
	Name    string
	Content []byte
}

//go:embed static
var static embed.FS

// operatorImage is the name of the operator's image, without what precedes it.
const operatorImage = "clusterregistry-operator"

// Files returns the files of the chart, in the order of their names.
func Files(o Options) ([]File, error) {
	published, err := render.PublishedImage(filepath.Join(o.Source, filepath.FromSlash(render.Base)))
	if err != nil {
		return nil, err
	}
	_, tag, _ := strings.Cut(strings.TrimPrefix(published.Reference, published.Repository), ":")
	o.Version, o.Repository = cmp.Or(o.Version, tag), cmp.Or(o.Repository, published.Repository)
	sources, err := o.read()
	if err != nil {
		return nil, err
	}
	// The values first: what is a value is taken out of the Deployment.
	values, err := newValues(o, sources.deployment)
	if err != nil {
		return nil, err
	}
	files, err := templates(sources)
	if err != nil {
		return nil, err
	}
	for name, make := range map[string]func() ([]byte, error){
		"Chart.yaml":         func() ([]byte, error) { return o.metadata(sources) },
		"values.yaml":        values.yaml,
		"values.schema.json": values.schema,
		"README.md":          func() ([]byte, error) { return values.readme(o) },
	} {
		content, err := make()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, File{Name: name, Content: content})
	}
	written, err := readFS(static, "static")
	if err != nil {
		return nil, err
	}
	for _, f := range written {
		files = append(files, File{Name: "templates/" + f.Name, Content: f.Content})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// sources are the objects of which the chart's templates are made.
type sources struct {
	operator, narrow, namespace, monitoring []*unstructured.Unstructured
	// deployment is the operator's, one of the first.
	deployment *unstructured.Unstructured
}

func (o Options) read() (s sources, err error) {
	for place, into := range map[string]*[]*unstructured.Unstructured{
		render.Base: &s.operator, narrowBase: &s.narrow, namespaceBase: &s.namespace, monitoringBase: &s.monitoring,
	} {
		objects, err := render.Directory(filepath.Join(o.Source, filepath.FromSlash(place)))
		if err != nil {
			return s, err
		}
		*into = objects
	}
	i := slices.IndexFunc(s.operator, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if i < 0 {
		return s, fmt.Errorf("%s has no Deployment", render.Base)
	}
	s.deployment = s.operator[i]
	return s, nil
}

// Read returns the files of a chart on disk; none if there is no such directory.
func Read(dir string) ([]File, error) {
	files, err := readFS(os.DirFS(dir), ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

func readFS(from fs.FS, dir string) (files []File, _ error) {
	return files, fs.WalkDir(from, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		files = append(files, File{Name: strings.TrimPrefix(name, dir+"/"), Content: content})
		return err
	})
}

// Differ returns the names of the files that are not the same in two charts, in order.
func Differ(a, b []File) []string {
	var out []string
	in := func(files []File, f File) bool {
		return slices.ContainsFunc(files, func(other File) bool { return other.Name == f.Name && bytes.Equal(other.Content, f.Content) })
	}
	for _, pair := range [][2][]File{{a, b}, {b, a}} {
		for _, f := range pair[0] {
			if !in(pair[1], f) {
				out = append(out, f.Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Command bundle writes the operator's bundle for the Operator Lifecycle Manager
// (format registry+v1), made of manifests/operator, manifests/olm, the samples,
// the table of releases and the markers in the API's Go types.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/hack/install/render"
	"github.com/clusterregistry/operator/hack/olm/catalog"
)

// options say what to bundle.
type options struct {
	// source is the checkout whose operator is bundled.
	source string
	// texts is the folder of manifests/olm.
	texts string
	// out is the bundle's folder.
	out string
	// image is the operator's image.
	image string
	// version is the operator's, beginning with "v".
	version string
	// replaces is the version that OLM upgrades from, or "".
	replaces string
	// repository is what precedes the name of every image.
	repository string
	// digests are those of images, by name and tag. Images without are named by tag.
	digests map[string]string
	// createdAt is the time of the bundle, in RFC 3339.
	createdAt string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	older, err := catalog.Older()
	if err != nil {
		return err
	}
	var o options
	flags := flag.NewFlagSet("bundle", flag.ContinueOnError)
	flags.StringVar(&o.source, "source", ".", "checkout whose operator is bundled")
	flags.StringVar(&o.texts, "texts", "manifests/olm", "folder with what catalogs say of it")
	flags.StringVar(&o.out, "out", "bundle", "folder to write")
	flags.StringVar(&o.version, "version", "", "version of the operator (default: the tag in manifests/operator)")
	flags.StringVar(&o.image, "image", "", "the operator's image (default: of the repository and the version)")
	flags.StringVar(&o.replaces, "replaces", older, "version that it replaces; empty for the first")
	flags.StringVar(&o.createdAt, "created-at", "", "time of the bundle, in RFC 3339 (default: that of the bundle of this version which is there, else now)")
	flags.StringVar(&o.repository, "repository", "", "what precedes the name of every image (default: as in manifests/operator)")
	digests := flags.String("digests", "", "a release's images.txt, to name images by digest")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *digests != "" {
		var err error
		if o.digests, err = readDigests(*digests); err != nil {
			return err
		}
	}
	objects, err := o.defaults()
	if err != nil {
		return err
	}
	all, err := files(o, objects)
	if err != nil {
		return err
	}
	return write(o.out, all)
}

// defaults completes the options and returns the operator's objects.
func (o *options) defaults() ([]*unstructured.Unstructured, error) {
	base := filepath.Join(o.source, filepath.FromSlash(render.Base))
	published, err := render.Published(base)
	if err != nil {
		return nil, err
	}
	reference, err := operatorReference(published)
	if err != nil {
		return nil, err
	}
	name, tag, _ := strings.Cut(reference, "/"+packageName+":")
	if o.repository == "" {
		o.repository = name
	}
	if o.version == "" {
		o.version = tag
	}
	if o.createdAt == "" {
		if o.createdAt, err = createdAt(o.out, o.version); err != nil {
			return nil, err
		}
	}
	return render.Objects(base, render.Image{Reference: o.operatorImage(), Repository: o.repository})
}

func operatorReference(objects []*unstructured.Unstructured) (string, error) {
	for _, object := range objects {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, container := range containers {
			if reference, ok := container.(map[string]any)["image"].(string); ok {
				return reference, nil
			}
		}
	}
	return "", errors.New("the operator's objects name no image")
}

// createdAt returns the time in the bundle that is there already, if that is of
// the same version, so that making it again changes nothing; else now.
func createdAt(dir, version string) (string, error) {
	now := time.Now().UTC().Format(time.RFC3339)
	text, err := os.ReadFile(filepath.Join(dir, "manifests", packageName+".clusterserviceversion.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return now, nil
	}
	if err != nil {
		return "", err
	}
	var csv operatorsv1alpha1.ClusterServiceVersion
	if err := yaml.Unmarshal(text, &csv); err != nil {
		return "", err
	}
	if csv.Name != csvName(version) {
		return now, nil
	}
	return csv.Annotations["createdAt"], nil
}

// readDigests reads a list of images as releases have it: NAME:TAG@DIGEST with
// the repository before, one in each line.
func readDigests(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		reference, digest, found := strings.Cut(strings.TrimSpace(line), "@")
		if !found {
			return nil, fmt.Errorf("%s: %q has no digest; write NAME:TAG@DIGEST", file, reference)
		}
		out[path.Base(reference)] = digest
	}
	return out, nil
}

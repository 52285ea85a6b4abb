package render

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/version"
)

// TestNoImageEscapes looks for an image that does not come from where the spec
// wants all to come from, as where the internet is out of reach.
func TestNoImageEscapes(t *testing.T) {
	for name, in := range variants(t) {
		overridden := change(in, func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Images = operatorv1alpha1.Images{Repository: "registry.example:5000/mirror", PullPolicy: corev1.PullAlways,
				PullSecrets: []operatorv1alpha1.LocalObjectReference{{Name: "first"}, {Name: "second"}}}
		})
		for workload, template := range podTemplates(t, rendered(t, overridden)) {
			if want := []corev1.LocalObjectReference{{Name: "first"}, {Name: "second"}}; !slices.Equal(template.Spec.ImagePullSecrets, want) {
				t.Errorf("%s: %s: pull secrets %v", name, workload, template.Spec.ImagePullSecrets)
			}
			for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
				image, is := strings.CutPrefix(c.Image, "registry.example:5000/mirror/")
				if !is || strings.Contains(image, "/") || !strings.Contains(image, ":v") {
					t.Errorf("%s: %s: container %s has the image %s", name, workload, c.Name, c.Image)
				}
				if c.ImagePullPolicy != corev1.PullAlways {
					t.Errorf("%s: %s: container %s has the pull policy %q", name, workload, c.Name, c.ImagePullPolicy)
				}
			}
		}
	}
}

// TestImagesOfTheOperator is about a registry that names no repository.
func TestImagesOfTheOperator(t *testing.T) {
	template := podTemplates(t, rendered(t, input(t, registry)))["StatefulSet fleet-etcd"]
	if image := template.Spec.Containers[0].Image; image != "ghcr.io/clusterregistry/etcd:v3.6.14" {
		t.Errorf("etcd's image is %s", image)
	}
	if image := template.Spec.InitContainers[0].Image; image != "ghcr.io/clusterregistry/clusterregistry-helper:v0.1.0" {
		t.Errorf("the guard's image is %s", image)
	}
}

// publishedTable is a table of releases of which the last is not published yet. Its
// digests are as long as real ones.
const publishedTable = `releases:
- {version: v0.1.0, released: true, images: {clusterregistry-apiserver: "sha256:a", clusterregistry-helper: "sha256:b", etcd: "sha256:c", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:f"}, helper: v0.1.0, etcd: v3.6.14, <rest>}
- {version: v0.2.0, released: true, images: {clusterregistry-apiserver: "sha256:d", clusterregistry-helper: "sha256:b", etcd: "sha256:e", clusterregistry-controller: "sha256:f", clusterregistry-backup: "sha256:f"}, helper: v0.1.0, etcd: v3.7.3, <rest>}
- {version: v0.3.0, helper: v0.3.0, etcd: v3.7.3, <rest>}
`

// tableEntry is what the entries of that table have in common.
const tableEntry = `layout: v1, serves: [v1], reads: [v1], stores: v1, host: {from: "1.34", to: "1.37"}, kubectl: {from: "1.32", to: "1.37"}`

// long returns a text with digests of one letter made as long as real ones are.
func long(text string) string {
	return regexp.MustCompile(`sha256:([a-f])\b`).ReplaceAllStringFunc(text, func(short string) string {
		return "sha256:" + strings.Repeat(short[len(short)-1:], 64)
	})
}

// TestDigests renders releases that are published and one that is not, from places
// where images have their published digests and places where they don't.
func TestDigests(t *testing.T) {
	releases, err := version.Parse([]byte(long(strings.ReplaceAll(publishedTable, "<rest>", tableEntry))))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		reason, release, members, repository, own string
		digests                                   ImageDigests
		server, helper, etcd                      string
	}{
		{"published", "v0.1.0", "v0.1.0", PublishedRepository, "", ImageDigestsPublished,
			"ghcr.io/clusterregistry/clusterregistry-apiserver:v0.1.0@sha256:a", "ghcr.io/clusterregistry/clusterregistry-helper:v0.1.0@sha256:b", "ghcr.io/clusterregistry/etcd:v3.6.14@sha256:c"},
		{"not published yet", "v0.3.0", "v0.3.0", PublishedRepository, "", ImageDigestsPublished,
			"ghcr.io/clusterregistry/clusterregistry-apiserver:v0.3.0", "ghcr.io/clusterregistry/clusterregistry-helper:v0.3.0", "ghcr.io/clusterregistry/etcd:v3.7.3"},
		{"servers that have returned, on members that could not", "v0.1.0", "v0.2.0", PublishedRepository, "", ImageDigestsPublished,
			"ghcr.io/clusterregistry/clusterregistry-apiserver:v0.1.0@sha256:a", "ghcr.io/clusterregistry/clusterregistry-helper:v0.1.0@sha256:b", "ghcr.io/clusterregistry/etcd:v3.7.3@sha256:e"},
		{"a local build", "v0.1.0", "v0.1.0", "registry.localhost", "", ImageDigestsPublished,
			"registry.localhost/clusterregistry-apiserver:v0.1.0", "registry.localhost/clusterregistry-helper:v0.1.0", "registry.localhost/etcd:v3.6.14"},
		{"a mirror that may have changed digests", "v0.1.0", "v0.1.0", PublishedRepository, "registry.example/platform", ImageDigestsPublished,
			"registry.example/platform/clusterregistry-apiserver:v0.1.0", "registry.example/platform/clusterregistry-helper:v0.1.0", "registry.example/platform/etcd:v3.6.14"},
		{"a mirror that keeps them", "v0.2.0", "v0.2.0", "registry.example/platform", "", ImageDigestsAlways,
			"registry.example/platform/clusterregistry-apiserver:v0.2.0@sha256:d", "registry.example/platform/clusterregistry-helper:v0.1.0@sha256:b", "registry.example/platform/etcd:v3.7.3@sha256:e"},
		{"one registry's mirror that keeps them", "v0.2.0", "v0.2.0", "registry.localhost", "registry.example:5000/platform", ImageDigestsAlways,
			"registry.example:5000/platform/clusterregistry-apiserver:v0.2.0@sha256:d", "registry.example:5000/platform/clusterregistry-helper:v0.1.0@sha256:b", "registry.example:5000/platform/etcd:v3.7.3@sha256:e"},
		{"a build under the published name", "v0.1.0", "v0.1.0", PublishedRepository, "", ImageDigestsNever,
			"ghcr.io/clusterregistry/clusterregistry-apiserver:v0.1.0", "ghcr.io/clusterregistry/clusterregistry-helper:v0.1.0", "ghcr.io/clusterregistry/etcd:v3.6.14"},
	} {
		release, err := version.Find(version.WithMembers(releases, test.members), test.release)
		if err != nil {
			t.Fatal(err)
		}
		in := input(t, registry, func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Images.Repository = test.own })
		in.Release = ReleaseOf(release)
		in.Environment.ImageRepository, in.Environment.ImageDigests = test.repository, test.digests
		templates := podTemplates(t, rendered(t, in))
		members, servers := templates["StatefulSet fleet-etcd"].Spec, templates["Deployment fleet-server"].Spec
		for image, want := range map[string]string{servers.Containers[0].Image: test.server, members.InitContainers[0].Image: test.helper, members.Containers[0].Image: test.etcd} {
			if image != long(want) {
				t.Errorf("%s: image %s, want %s", test.reason, image, long(want))
			}
		}
	}
}

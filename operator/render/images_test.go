package render

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
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

package render

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// scratchVolume is the name that the manifests give the volume in which a Job works.
const scratchVolume = "scratch"

// provisionScratch has the scratch volume of a Job be one of a StorageClass in place of a part
// of the node's disk.
func provisionScratch(template map[string]any, class, size string) error {
	volumes, _, err := unstructured.NestedSlice(template, "volumes")
	if err != nil {
		return err
	}
	for i := range volumes {
		if volumes[i].(map[string]any)["name"] != scratchVolume {
			continue
		}
		quantity, err := resource.ParseQuantity(size)
		if err != nil {
			return err
		}
		spec := corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: quantity}},
		}
		if class != "" {
			spec.StorageClassName = &class
		}
		claim, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
		if err != nil {
			return err
		}
		volumes[i] = map[string]any{"name": scratchVolume, "ephemeral": map[string]any{"volumeClaimTemplate": map[string]any{"spec": claim}}}
	}
	return unstructured.SetNestedSlice(template, volumes, "volumes")
}

// localVolumes returns the names of the volumes that are a part of the node's disk.
func localVolumes(template map[string]any) string {
	volumes, _, _ := unstructured.NestedSlice(template, "volumes")
	var names []string
	for _, volume := range volumes {
		if volume, is := volume.(map[string]any); is && volume["emptyDir"] != nil {
			names = append(names, volume["name"].(string))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

package render

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// requireResources sets the resources of the container that a workload is about, or of all
// containers of a Job, which run one after the other.
func requireResources(template map[string]any, component string, resources operatorv1alpha1.Resources) error {
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&resources)
	if err != nil || len(wanted) == 0 {
		return err
	}
	for _, field := range []string{"initContainers", "containers"} {
		containers, _, err := unstructured.NestedSlice(template, field)
		if err != nil {
			return err
		}
		long := slices.Contains([]string{ComponentServer, ComponentEtcd, ComponentController}, component)
		if len(containers) == 0 || long && field == "initContainers" {
			continue
		}
		for i := range containers {
			container := containers[i].(map[string]any)
			for kind, amounts := range wanted {
				if err := unstructured.SetNestedField(container, amounts, "resources", kind); err != nil {
					return err
				}
			}
			if err := fit(container, resources); err != nil {
				return err
			}
		}
		if err := unstructured.SetNestedSlice(template, containers, field); err != nil {
			return err
		}
	}
	return nil
}

// fit raises the limits of a container to the requests of the spec, or lowers the requests to its
// limits, where the spec has only one of them: the host refuses a request above its limit.
func fit(container map[string]any, resources operatorv1alpha1.Resources) error {
	given, other, above := resources.Requests, "limits", 1
	if len(given) == 0 {
		given, other, above = resources.Limits, "requests", -1
	}
	if len(resources.Requests) > 0 && len(resources.Limits) > 0 {
		return nil
	}
	for name, amount := range given {
		text, found, err := unstructured.NestedString(container, "resources", other, string(name))
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		standing, err := resource.ParseQuantity(text)
		if err != nil {
			return err
		}
		if amount.Cmp(standing) == above {
			if err := unstructured.SetNestedField(container, amount.String(), "resources", other, string(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

package main

import (
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// TestOLMv1 has OLM v1 render the bundle that is in the repository.
func TestOLMv1(t *testing.T) {
	const namespace = "clusterregistry-system"
	all, err := objects("../../../bundle", namespace)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, object := range all {
		kinds[object.GetObjectKind().GroupVersionKind().Kind]++
		deployment, ok := object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		if targets, ok := deployment.Spec.Template.Annotations["olm.targetNamespaces"]; !ok || targets != "" {
			t.Errorf("the operator is to watch %q, not all namespaces", targets)
		}
	}
	// Of the operator's own two lists of rules come ClusterRoles, because it watches
	// all namespaces; the third is in the bundle.
	want := map[string]int{"CustomResourceDefinition": 1, "Deployment": 1, "ServiceAccount": 1, "ClusterRole": 3, "ClusterRoleBinding": 2, "PodDisruptionBudget": 1, "Service": 1}
	if !maps.Equal(kinds, want) {
		t.Errorf("it makes %v, not %v", kinds, want)
	}
}

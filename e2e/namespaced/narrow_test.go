package namespaced

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/e2e/framework"
)

// same has the operator run what it ran before. It is filled with the image and
// the repository of the registries' images.
const same = `
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: clusterregistry-operator, namespace: clusterregistry-system}
    spec: {template: {spec: {containers: [{name: operator, image: %q, env: [{name: IMAGE_REPOSITORY, value: %q}]}]}}}`

// narrow installs the operator for one namespace. When the test ends, it is for
// all again.
func narrow(t *testing.T, e *framework.Env, kubectl *framework.Kubectl, namespace string) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	if err := e.Client.Get(t.Context(), client.ObjectKey{Namespace: framework.OperatorNamespace, Name: "clusterregistry-operator"}, deployment); err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	patch := fmt.Sprintf(same, container.Image, variable(t, container, "IMAGE_REPOSITORY"))
	install := func(kubectl *framework.Kubectl, dir string) error {
		if _, err := kubectl.Try("apply", "--server-side", "--force-conflicts", "-k", dir); err != nil {
			return err
		}
		_, err := kubectl.Try("--namespace="+framework.OperatorNamespace, "rollout", "status", "deployment/clusterregistry-operator", "--timeout=5m")
		return err
	}
	before, narrowed := framework.OperatorOverlay(t, patch), framework.OperatorOverlay(t, patch, namespace)
	t.Cleanup(func() {
		if err := install(kubectl.After(), before); err != nil {
			t.Errorf("the operator is not for all namespaces again: %v", err)
		}
	})
	if err := install(kubectl, narrowed); err != nil {
		t.Fatal(err)
	}
}

// variable returns a variable of a container.
func variable(t *testing.T, container corev1.Container, name string) string {
	t.Helper()
	for _, variable := range container.Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	t.Fatalf("container %s has no variable %s", container.Name, name)
	return ""
}

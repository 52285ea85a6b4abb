package namespaced

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	// image has the operator run what it ran before, and is filled with the image
	// and the repository of the registries' images.
	image = `
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: clusterregistry-operator, namespace: clusterregistry-system}
    spec: {template: {spec: {containers: [{name: operator, image: %q, env: [{name: IMAGE_REPOSITORY, value: %q}]}]}}}
`
	// everywhere is the operator for all namespaces, filled with the folder of the
	// manifests and image.
	everywhere = `
resources: [%s/operator]
patches: %s`
	// some is the one for some namespaces, filled with the folder of the manifests,
	// the namespaces and image.
	some = `
resources: [%s/operator-namespaced/operator, listed]
patches:
- target: {kind: Deployment, name: clusterregistry-operator}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--watch-namespaces=%s"}%s`
	// listed is what it may do in a namespace, filled with that and the folder.
	listed = `
namespace: %s
resources: [../%s/operator-namespaced/namespace]
`
)

// narrow installs the operator for one namespace. When the test ends, it is for
// all again.
func narrow(t *testing.T, e *framework.Env, kubectl *framework.Kubectl, namespace string) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	if err := e.Client.Get(t.Context(), client.ObjectKey{Namespace: framework.OperatorNamespace, Name: "clusterregistry-operator"}, deployment); err != nil {
		t.Fatal(err)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	same := fmt.Sprintf(image, container.Image, variable(t, container, "IMAGE_REPOSITORY"))
	all, one := t.TempDir(), t.TempDir()
	manifests, err := filepath.Rel(one, filepath.Join(framework.Root(t), "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(all, "kustomization.yaml"), fmt.Sprintf(everywhere, manifests, same))
	write(t, filepath.Join(one, "kustomization.yaml"), fmt.Sprintf(some, manifests, namespace, same))
	write(t, filepath.Join(one, "listed", "kustomization.yaml"), fmt.Sprintf(listed, namespace, manifests))
	install := func(kubectl *framework.Kubectl, dir string) error {
		if _, err := kubectl.Try("apply", "--server-side", "--force-conflicts", "-k", dir); err != nil {
			return err
		}
		_, err := kubectl.Try("--namespace="+framework.OperatorNamespace, "rollout", "status", "deployment/clusterregistry-operator", "--timeout=5m")
		return err
	}
	t.Cleanup(func() {
		if err := install(kubectl.After(), all); err != nil {
			t.Errorf("the operator is not for all namespaces again: %v", err)
		}
	})
	if err := install(kubectl, one); err != nil {
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

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

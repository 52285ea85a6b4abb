package backup

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/e2e/framework"
)

// deleteNamespace deletes the test's namespace and waits until it is gone.
func deleteNamespace(t *testing.T, e *framework.Env) {
	t.Helper()
	namespace := &corev1.Namespace{}
	namespace.Name = e.Namespace
	if err := e.Client.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the namespace to be gone", func(ctx context.Context) error {
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%w): %+v", err, namespace.Status.Conditions)
	})
}

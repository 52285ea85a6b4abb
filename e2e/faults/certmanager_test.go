package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMatrixCertManagerLate installs a registry on a host without cert-manager's API,
// which then comes: the operator says what it waits for, and continues automatically. In
// "make test", e2e/integration has that with a host alone.
func TestMatrixCertManagerLate(t *testing.T) {
	e := framework.New(t).WithOperator()
	restore := removeCertManager(t, e)
	registry := independent(e, 1)
	e.Install(registry)
	e.WaitCondition(registry, operatorv1alpha1.ConditionCertificatesReady, metav1.ConditionFalse, operatorv1alpha1.ReasonCertManagerNotInstalled, "install it", "continues automatically")
	e.WaitCondition(registry, operatorv1alpha1.ConditionReady, metav1.ConditionFalse, operatorv1alpha1.ReasonCertManagerNotInstalled)
	restore()
	e.WaitReady(registry)
}

// removeCertManager deletes cert-manager's CRDs, and with them all that it knows.
// It returns what brings them back; the end of the test does so, too.
func removeCertManager(t *testing.T, e *framework.Env) (restore func()) {
	t.Helper()
	var all apiextensionsv1.CustomResourceDefinitionList
	if err := e.Client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var removed []apiextensionsv1.CustomResourceDefinition
	for _, crd := range all.Items {
		if crd.Spec.Group == "cert-manager.io" || strings.HasSuffix(crd.Spec.Group, ".cert-manager.io") {
			removed = append(removed, crd)
		}
	}
	if len(removed) == 0 {
		t.Fatal("this test needs cert-manager, of which there is no CRD")
	}
	create := func(ctx context.Context) error {
		for _, crd := range removed {
			again := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name, Labels: crd.Labels, Annotations: crd.Annotations}, Spec: crd.Spec}
			if err := e.Client.Create(ctx, again); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		return nil
	}
	t.Cleanup(func() {
		framework.EventuallyAfter(t, "cert-manager's CRDs to be back", create)
	})
	for i := range removed {
		if err := e.Client.Delete(t.Context(), removed[i].DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	e.Eventually("cert-manager's CRDs to be gone", func(ctx context.Context) error {
		for i := range removed {
			if err := e.Client.Get(ctx, client.ObjectKeyFromObject(&removed[i]), &apiextensionsv1.CustomResourceDefinition{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is there: %w", removed[i].Name, err)
			}
		}
		return nil
	})
	return func() {
		if err := create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

package install

import (
	"cmp"
	"context"
	"errors"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	crdName        = "clusters.clusterregistry.k8s.io"
	apiServiceName = "v1alpha1.clusterregistry.k8s.io"
)

// TestMatrixGroupTaken installs two aggregated registries in a host that serves their
// API group from a CRD. Nothing is taken from anybody: when the CRD goes, one
// registry takes its place, and when that goes, the other. In "make test",
// e2e/integration has that without nodes.
func TestMatrixGroupTaken(t *testing.T) {
	e := framework.New(t).WithOperator()
	e.Apply("crd.yaml", nil)
	e.Eventually("the host to serve the CRD's group", func(ctx context.Context) error {
		return e.Client.Get(ctx, client.ObjectKey{Name: apiServiceName}, &apiregistrationv1.APIService{})
	})
	var registries []*operatorv1alpha1.ClusterRegistry
	for _, name := range []string{"one", "two"} {
		registry := e.Sample("aggregated-single.yaml")
		registry.Name = name
		e.Install(registry)
		registries = append(registries, registry)
	}
	for _, registry := range registries {
		e.WaitCondition(registry, operatorv1alpha1.ConditionAPIServiceReady, metav1.ConditionFalse, operatorv1alpha1.ReasonGroupTaken, "the host cluster already serves ")
	}
	if backend := backend(t, e); backend != "" {
		t.Errorf("the CRD's APIService leads to %s", backend)
	}
	removeCRD(t, e)
	first, second := whoTakes(t, e, registries)
	e.WaitReady(first)
	e.WaitCondition(second, operatorv1alpha1.ConditionAPIServiceReady, metav1.ConditionFalse, operatorv1alpha1.ReasonGroupTaken,
		"from ClusterRegistry "+e.Namespace+"/"+first.Name+", which is left unchanged")
	if got, want := backend(t, e), e.Namespace+"/"+first.Name+"-server"; got != want {
		t.Errorf("the APIService leads to %s, not %s", got, want)
	}
	e.Remove(first)
	e.WaitReady(second)
	if got, want := backend(t, e), e.Namespace+"/"+second.Name+"-server"; got != want {
		t.Errorf("the APIService leads to %s, not %s", got, want)
	}
}

// whoTakes returns the registry that the host's API leads to, as soon as there is
// one, and the other.
func whoTakes(t *testing.T, e *framework.Env, registries []*operatorv1alpha1.ClusterRegistry) (first, second *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	e.Eventually("one of the registries to take the group", func(ctx context.Context) error {
		for i, registry := range registries {
			if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
				return err
			}
			if meta.IsStatusConditionTrue(registry.Status.Conditions, operatorv1alpha1.ConditionReady) {
				first, second = registry, registries[1-i]
				return nil
			}
		}
		return errors.New("neither is ready")
	})
	return first, second
}

// backend returns the Service that the host's APIService leads to, nothing when
// the host answers itself.
func backend(t *testing.T, e *framework.Env) string {
	t.Helper()
	var service apiregistrationv1.APIService
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: apiServiceName}, &service); err != nil {
		t.Fatal(err)
	}
	if service.Spec.Service == nil {
		return ""
	}
	return service.Spec.Service.Namespace + "/" + service.Spec.Service.Name
}

func removeCRD(t *testing.T, e *framework.Env) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	remove(t, e, crd)
	e.Eventually("the CRD to be gone", func(ctx context.Context) error {
		err := e.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it is still there"))
	})
}

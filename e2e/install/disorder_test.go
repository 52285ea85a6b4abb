package install

import (
	"context"
	"errors"
	"fmt"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestDisorder deletes a registry in the midst of its installation, with its data: nothing of
// it holds the host up, and nothing is left.
func TestDisorder(t *testing.T) {
	e := framework.New(t).WithOperator()
	moments := []client.Object{&appsv1.StatefulSet{}}
	if framework.Full() {
		moments = append(moments, &certmanagerv1.Certificate{}, &appsv1.Deployment{}, &apiregistrationv1.APIService{})
	}
	for _, moment := range moments {
		t.Run(fmt.Sprintf("in the midst of its installation, at %T", moment), func(t *testing.T) {
			e, registry := disposable(t, e)
			awaitAny(e, moment)
			e.Remove(registry)
			checkLeft(t, e)
		})
	}
}

// TestMatrixDisorder deletes a registry, and what is around it, while no operator runs: nothing
// of it holds the host up when one runs again. In "make test", e2e/integration has that with
// a host alone.
func TestMatrixDisorder(t *testing.T) {
	e := framework.New(t).WithOperator()
	t.Run("without an operator", func(t *testing.T) {
		e, registry := disposable(t, e)
		e.WaitReady(registry)
		start := e.StopOperator()
		if err := e.Client.Delete(t.Context(), registry); err != nil {
			t.Fatal(err)
		}
		start()
		e.WaitGone(registry)
		checkLeft(t, e)
	})
	t.Run("its finalizer by hand", func(t *testing.T) {
		e, registry := disposable(t, e)
		e.WaitReady(registry)
		start := e.StopOperator()
		e.HostMaySuffer("the servers of an aggregated registry go, and no operator runs to remove its APIServices")
		e.Update(registry, func() { registry.Finalizers = nil })
		e.Remove(registry)
		start()
		// Claims, CAs and the record of etcd's identity belong to nobody now.
		e.Eventually("nothing of it to be left in the host", func(ctx context.Context) error {
			objects, err := e.Objects(ctx)
			if err != nil {
				return err
			}
			for _, o := range objects {
				if o.Namespace != e.Namespace {
					return fmt.Errorf("%s is left", framework.Name(o))
				}
			}
			return nil
		})
	})
}

// disposable installs a registry whose data goes with it.
func disposable(t *testing.T, e *framework.Env) (*framework.Env, *operatorv1alpha1.ClusterRegistry) {
	e = e.In(t)
	registry := e.Sample("aggregated-single.yaml")
	registry.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicyDelete
	e.Install(registry)
	return e, registry
}

// awaitAny waits until the registries of a test have an object of a kind.
func awaitAny(e *framework.Env, kind client.Object) {
	e.Eventually(fmt.Sprintf("a %T", kind), func(ctx context.Context) error {
		gvk, err := e.Client.GroupVersionKindFor(kind)
		if err != nil {
			return err
		}
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(gvk)
		if err := e.Client.List(ctx, &list, client.MatchingLabels{operatorv1alpha1.LabelNamespace: e.Namespace}); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
}

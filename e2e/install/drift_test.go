package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// drift changes an object of a registry, which becomes again what it was. What is
// deleted comes back in e2e/accidents.
func drift(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: registry.Name + "-server"}}
	e.Update(deployment, func() {
		args := &deployment.Spec.Template.Spec.Containers[0].Args
		*args = append(*args, "--v=9")
	})
	e.Eventually("it to be as it was", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if args := serverArgs(deployment); slices.Contains(args, "--v=9") {
			return fmt.Errorf("its arguments are %q", args)
		}
		return nil
	})
	e.WaitReady(registry)
}

// paused damages and edits a registry that is to be left alone, which takes
// effect when it no longer is.
func paused(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Paused = true })
	e.WaitCondition(registry, operatorv1alpha1.ConditionProgressing, metav1.ConditionFalse, operatorv1alpha1.ReasonPaused, "spec.paused")
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: registry.Name + "-server"}}
	remove(t, e, budget)
	// That the operator has looked since, its status tells.
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Server.ExtraArgs = map[string]operatorv1alpha1.Argument{"v": "1"}
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionProgressing, metav1.ConditionFalse, operatorv1alpha1.ReasonPaused)
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(budget), budget); !apierrors.IsNotFound(err) {
		t.Errorf("the operator repairs a registry that is paused: %v", err)
	}
	deployment := &appsv1.Deployment{}
	read := func(ctx context.Context) error { return e.Get(ctx, registry.Name+"-server", deployment) }
	if err := read(t.Context()); err != nil || slices.Contains(serverArgs(deployment), "--v=1") {
		t.Errorf("the operator changes a registry that is paused: %v, %q", err, serverArgs(deployment))
	}
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Paused = false })
	e.WaitReady(registry)
	if err := errors.Join(read(t.Context()), e.Client.Get(t.Context(), client.ObjectKeyFromObject(budget), budget)); err != nil || !slices.Contains(serverArgs(deployment), "--v=1") {
		t.Errorf("the registry is ready, but not as it should be: %v, %q", err, serverArgs(deployment))
	}
}

func serverArgs(deployment *appsv1.Deployment) []string {
	return deployment.Spec.Template.Spec.Containers[0].Args
}

func remove(t *testing.T, e *framework.Env, object client.Object) {
	t.Helper()
	if err := e.Client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	object.SetResourceVersion("")
}

// TestMatrixNotOwned gives a registry a name that someone's Deployment stands in
// the way of. It stays until its owner takes it away. In "make test", e2e/integration has
// that with a host alone.
func TestMatrixNotOwned(t *testing.T) {
	t.Parallel()
	e := framework.New(t).WithOperator()
	labels := map[string]string{"app": "other"}
	other := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "team-server", Namespace: e.Namespace, Labels: labels}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "other.example/other"}}}},
	}}
	e.Create(other)
	registry := e.Sample("independent-nodeport.yaml")
	registry.Spec.Server.Replicas, registry.Spec.Server.Service.NodePort = 1, 0
	e.Install(registry)
	e.WaitCondition(registry, operatorv1alpha1.ConditionServerReady, metav1.ConditionFalse, operatorv1alpha1.ReasonNotOwned,
		"Deployment "+e.Namespace+"/team-server is in the way", "delete it, or give the registry another name")
	current := &appsv1.Deployment{}
	if err := e.Get(t.Context(), other.Name, current); err != nil || current.UID != other.UID || current.Generation != other.Generation || len(current.OwnerReferences) > 0 {
		t.Errorf("the other's Deployment is no longer as it was: %v, %+v", err, current)
	}
	remove(t, e, other)
	e.WaitReady(registry)
}

package olm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	operator  = "clusterregistry-operator"
	namespace = framework.OperatorNamespace
	older     = operator + ".v0.1.0"
	present   = operator + ".v0.2.0"
	// rate is how many requests a second clients send while the operator comes and goes.
	rate = 50
)

// TestLifecycle does with OLM v0 what its users do: subscribe, be upgraded through
// the channel, unsubscribe. A registry serves all the while, and no request fails.
func TestLifecycle(t *testing.T) {
	e := framework.New(t)
	kubectl := framework.NewKubectl(t, "v1.37.1", framework.ClusterKubeconfig(t))
	root := framework.Root(t)
	e.Eventually("OLM to be applied", func(context.Context) error {
		// Twice, because its definitions are followed by objects of their kinds.
		_, err := kubectl.Try("apply", "--server-side", "-f", filepath.Join(root, "bin", "olm", "olm.yaml"))
		return err
	})
	waitAvailable(e, "olm", "olm-operator")
	waitAvailable(e, "olm", "catalog-operator")

	kubectl.Run("apply", "-f", "testdata/catalogs.yaml")
	waitAvailable(e, "olm", "catalog-first")
	waitAvailable(e, "olm", "catalog-second")

	subscribe(t, kubectl, "first")
	waitSucceeded(e, older)
	waitAvailable(e, namespace, operator)

	registry := e.Sample("aggregated-ha.yaml")
	registry.Spec.Version = "v0.1.0"
	e.Install(registry)
	e.WaitReady(registry)
	clients := framework.StartLoad(t, e.RegistryConfig(registry), rate, framework.Watchers(2), framework.Population(50), framework.Pending(10*rate))
	clients.Mark("the operator is upgraded")
	subscribe(t, kubectl, "second")
	waitSucceeded(e, present)
	waitGone(e, schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion"}, older)
	waitAvailable(e, namespace, operator)
	e.WaitReady(registry)
	if registry.Status.Version != "v0.1.0" {
		t.Errorf("a newer operator has brought the registry to %s", registry.Status.Version)
	}

	clients.Mark("the operator is uninstalled")
	kubectl.Run("-n", namespace, "delete", "subscription,clusterserviceversion", "--all", "--wait")
	waitGone(e, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, operator)
	clients.Settle(t)
	report := clients.Stop()
	t.Logf("%s", report)
	for _, failure := range report.Failed {
		t.Errorf("%s", failure)
	}
	e.Compare(registry, report)
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(registry), registry); err != nil {
		t.Errorf("the registry's object is gone with the operator: %v", err)
	}

	subscribe(t, kubectl, "second")
	waitSucceeded(e, present)
	e.WaitReady(registry)
	e.Remove(registry)
	kubectl.Run("-n", namespace, "delete", "subscription,clusterserviceversion", "--all", "--wait")
	waitGone(e, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, operator)
	kubectl.Run("delete", "crd", "clusterregistries.operator.clusterregistry.io")
}

// TestV1 applies what OLM v1's own renderer makes of the bundle.
func TestV1(t *testing.T) {
	e := framework.New(t)
	kubectl := framework.NewKubectl(t, "v1.37.1", framework.ClusterKubeconfig(t))
	manifests := filepath.Join(framework.Root(t), "bin", "olm", "v1.yaml")
	// As with OLM v1, the namespace and its installer's rights are the user's.
	kubectl.Run("apply", "-f", "testdata/namespace.yaml")
	kubectl.Run("apply", "--server-side", "-f", manifests)
	waitAvailable(e, namespace, operator)
	registry := e.Sample("aggregated-single.yaml")
	e.Install(registry)
	e.WaitReady(registry)
	e.Remove(registry)
	kubectl.Run("delete", "-f", manifests)
}

// subscribe subscribes to the operator in one of the catalogs, which opm serves.
func subscribe(t *testing.T, kubectl *framework.Kubectl, catalog string) {
	t.Helper()
	text, err := os.ReadFile("testdata/subscription.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kubectl.Stdin(strings.ReplaceAll(string(text), "{{.Address}}", "catalog-"+catalog+".olm.svc:50051")).Run("apply", "-f", "-")
}

// waitSucceeded waits until OLM says that a version of the operator runs.
func waitSucceeded(e *framework.Env, csv string) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion"})
	e.Eventually(csv+" to succeed", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: csv}, object); err != nil {
			return err
		}
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		message, _, _ := unstructured.NestedString(object.Object, "status", "message")
		if phase != "Succeeded" {
			return fmt.Errorf("it is %s: %s", phase, message)
		}
		return nil
	})
}

// waitAvailable waits until a Deployment is rolled out.
func waitAvailable(e *framework.Env, namespace, name string) {
	var deployment appsv1.Deployment
	e.Eventually("Deployment "+namespace+"/"+name+" to be available", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &deployment); err != nil {
			return err
		}
		return framework.RolledOut(&deployment)
	})
}

// waitGone waits until an object of the operator's namespace is gone, and no pod
// of the operator is left if that was its Deployment.
func waitGone(e *framework.Env, kind schema.GroupVersionKind, name string) {
	e.Eventually(kind.Kind+" "+name+" to be gone", func(ctx context.Context) error {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		if err := e.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		if kind.Kind != "Deployment" {
			return nil
		}
		var pods corev1.PodList
		if err := e.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": operator}); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d of its pods are left", len(pods.Items))
		}
		return nil
	})
}

package olm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
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
	waitCondition(e, registry, operatorv1alpha1.ConditionAPIServiceReady, operatorv1alpha1.ReasonAggregationNotAllowed)
	kubectl.Run("-n", namespace, "patch", "subscription", "clusterregistry", "--type=merge", "-p",
		`{"spec":{"config":{"env":[{"name":"AGGREGATED_NAMESPACES","value":"`+registry.Namespace+`"}]}}}`)
	e.WaitReady(registry)
	clients := framework.StartLoad(t, e.RegistryConfig(registry), rate, framework.Watchers(2), framework.Population(50), framework.Pending(10*rate))
	clients.Mark("the operator is upgraded")
	subscribe(t, kubectl, "second")
	waitSucceeded(e, present)
	waitGone(e, schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion"}, older)
	waitAvailable(e, namespace, operator)
	editorMayNotAggregate(t, e, kubectl)
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
	e.Unharmed(registry, report)
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(registry), registry); err != nil {
		t.Errorf("the registry's object is gone with the operator: %v", err)
	}

	subscribe(t, kubectl, "second")
	waitSucceeded(e, present)
	kubectl.Run("-n", namespace, "patch", "subscription", "clusterregistry", "--type=merge", "-p",
		`{"spec":{"config":{"env":[{"name":"AGGREGATED_NAMESPACES","value":"*"}]}}}`)
	e.WaitReady(registry)
	e.Remove(registry)
	kubectl.Run("-n", namespace, "delete", "subscription,clusterserviceversion", "--all", "--wait")
	waitGone(e, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, operator)
	kubectl.Run("delete", "crd", "clusterregistries.operator.clusterregistry.io")
}

// editorMayNotAggregate does what OLM lets every editor of a namespace do, creating
// registries there, and expects that an aggregated one gets nothing of the host.
func editorMayNotAggregate(t *testing.T, e *framework.Env, kubectl *framework.Kubectl) {
	t.Helper()
	const team, editor = "team-x", "ann"
	kubectl.Run("create", "namespace", team)
	defer kubectl.Run("delete", "namespace", team, "--wait=false")
	kubectl.Run("-n", team, "create", "rolebinding", "editors", "--clusterrole=edit", "--user="+editor)
	can := func(verb, resource string) bool {
		answer, _ := kubectl.Try("auth", "can-i", verb, resource, "-n", team, "--as="+editor) // "no" is an error
		return strings.HasPrefix(strings.TrimSpace(answer), "yes")
	}
	e.Eventually("OLM to give editors its roles", func(context.Context) error {
		if !can("create", "clusterregistries.operator.clusterregistry.io") {
			return errors.New("an editor may not create a ClusterRegistry; docs/reference/access.md says that OLM lets them")
		}
		return nil
	})
	if can("update", "clusterregistries.operator.clusterregistry.io/status") || can("patch", "clusterregistries.operator.clusterregistry.io/status") {
		t.Error("an editor may write the status of registries")
	}
	theirs := e.Sample("aggregated-single.yaml")
	theirs.Namespace, theirs.Spec.Images.Repository = team, "registry.invalid/theirs"
	content, err := yaml.Marshal(theirs)
	if err != nil {
		t.Fatal(err)
	}
	kubectl.Stdin(string(content)).Run("-n", team, "--as="+editor, "create", "-f", "-")
	waitCondition(e, theirs, operatorv1alpha1.ConditionAPIServiceReady, operatorv1alpha1.ReasonAggregationNotAllowed)
	if len(theirs.Status.Inventory) > 0 {
		t.Errorf("something was made for it: %v", theirs.Status.Inventory)
	}
	kubectl.Run("-n", team, "--as="+editor, "delete", "clusterregistry", theirs.Name, "--timeout=2m")
}

// waitCondition waits until a condition of a registry has a reason.
func waitCondition(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, condition, reason string) {
	e.Eventually(condition+" to say "+reason, func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(registry.Status.Conditions, condition); c == nil || c.Reason != reason {
			return fmt.Errorf("the conditions are %+v", registry.Status.Conditions)
		}
		return nil
	})
}

// TestV1 applies what OLM v1's own renderer makes of the bundle.
func TestV1(t *testing.T) {
	e := framework.New(t)
	kubectl := framework.NewKubectl(t, "v1.37.1", framework.ClusterKubeconfig(t))
	manifests := filepath.Join(framework.Root(t), "bin", "olm", "v1.yaml")
	// As with OLM v1, the namespace and its installer's rights are the user's.
	kubectl.Run("apply", "-f", "testdata/namespace.yaml")
	kubectl.Run("apply", "--server-side", "-f", manifests)
	kubectl.Run("-n", namespace, "set", "env", "deployment/"+operator, "AGGREGATED_NAMESPACES=*")
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

package measure

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestTimeToReady installs a highly available registry with the operator, and then
// the same objects by hand with kubectl, all at once, on the same nodes with the
// same images. Both begin without data and with the CAs of an earlier registry
// of that name, since the objects name their certificates.
func TestTimeToReady(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := e.Sample("aggregated-ha.yaml")
	e.Install(registry)
	e.WaitReady(registry)
	forget(t, e, registry)

	again := e.Sample("aggregated-ha.yaml")
	start := time.Now()
	e.Install(again)
	e.WaitReady(again)
	served(t, e)
	operator := time.Since(start)

	manifests := collect(t, e, again)
	forget(t, e, again)
	// It would take what names a registry that does not exist for an orphan.
	e.StopOperator()
	e.HostMaySuffer("kubectl applies APIServices before there is a server, and deletes them in any order")
	kubectl := framework.NewKubectl(t, "v1.37.1", framework.ClusterKubeconfig(t)).Stdin(manifests)
	start = time.Now()
	kubectl.Run("apply", "--server-side", "--field-manager=hand", "-f", "-")
	served(t, e)
	hand := time.Since(start)
	t.Logf("applied -> Ready, 3 members of etcd and 2 servers: operator %.1f s, by hand %.1f s, ratio %.2f", operator.Seconds(), hand.Seconds(), operator.Seconds()/hand.Seconds())
	kubectl.Run("delete", "--wait=false", "-f", "-")
	servers(t, e)
}

// servers waits until the servers have ended, which takes longer than a test's
// namespace is waited for.
func servers(t *testing.T, e *framework.Env) {
	t.Helper()
	e.Eventually("the pods to end", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := e.Client.List(ctx, &pods, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d are left", len(pods.Items))
		}
		return nil
	})
}

// served waits until every server works and the host serves the registry's API.
func served(t *testing.T, e *framework.Env) {
	t.Helper()
	clients, err := versioned.NewForConfig(e.Config)
	if err != nil {
		t.Fatal(err)
	}
	e.Eventually("the host to serve clusters from all servers", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := e.Client.List(ctx, &pods, client.InNamespace(e.Namespace), client.MatchingLabels{operatorv1alpha1.LabelInstance: "fleet"}); err != nil {
			return err
		}
		if len(pods.Items) != 5 {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		for _, pod := range pods.Items {
			if err := e.PodReady(ctx, pod.Name); err != nil {
				return err
			}
		}
		_, err := clients.ClusterregistryV1alpha1().Clusters().List(ctx, metav1.ListOptions{})
		return err
	})
}

// collect returns the manifests of a registry's objects, as somebody would write
// them down to apply them by hand.
func collect(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) string {
	t.Helper()
	var out bytes.Buffer
	for _, reference := range registry.Status.Inventory {
		mapping, err := e.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: reference.Group, Kind: reference.Kind})
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(mapping.GroupVersionKind)
		if err := e.Client.Get(t.Context(), client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}, object); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "ownerReferences"} {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
		delete(object.Object, "status")
		if reference.Name == registry.Name+"-etcd-identity" {
			var names []string
			for _, member := range registry.Status.Etcd.Members {
				names = append(names, member.Name)
			}
			object.Object["data"] = map[string]any{"initial-cluster-state": "new", "members": strings.Join(names, ",")}
		}
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIPs")
		if reference.Name == registry.Name+"-etcd" && reference.Kind == "Service" {
			object.Object["spec"].(map[string]any)["clusterIP"] = corev1.ClusterIPNone
		}
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(content))
	}
	return out.String()
}

// forget removes a registry and its data, but for its CAs.
func forget(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	e.Remove(registry)
	identity := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: registry.Name + "-etcd-identity"}}
	if err := e.Client.Delete(t.Context(), identity); err != nil {
		t.Fatal(err)
	}
	if err := e.Client.DeleteAllOf(t.Context(), &corev1.PersistentVolumeClaim{}, client.InNamespace(e.Namespace)); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the claims to be gone", func(ctx context.Context) error {
		var claims corev1.PersistentVolumeClaimList
		if err := e.Client.List(ctx, &claims, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		if len(claims.Items) > 0 {
			return fmt.Errorf("%d are left", len(claims.Items))
		}
		return nil
	})
}

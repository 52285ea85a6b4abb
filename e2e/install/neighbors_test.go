package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// importedCluster is a Cluster as Cluster API's users and controllers write it.
const importedCluster = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: imported, namespace: %s, labels: {tier: gold, internal: x}}
spec:
  controlPlaneEndpoint: {host: 192.0.2.7, port: 6443}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: ACluster, name: imported}
`

// TestMatrixNeighbors has the controller read a Cluster of Cluster API in one namespace and
// publish it as a ClusterProfile in another one: with no right in either before it is open to
// the registry, with none but what is documented then, and with none afterwards. The controller is
// killed on the way. In "make test", e2e/docs has that without the rights.
func TestMatrixNeighbors(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := e.Sample("aggregated-single.yaml")
	e.Install(registry)
	e.WaitReady(registry)
	kubectl := newest(t, framework.ClusterKubeconfig(t))
	source, target := e.Namespace+"-capi", e.Namespace+"-profiles"
	framework.NeighborAPIs(t, kubectl)
	t.Cleanup(func() {
		if _, err := kubectl.After().Try("delete", "namespace", "--ignore-not-found", source, target); err != nil {
			t.Error(err)
		}
	})
	for _, namespace := range []string{source, target} {
		kubectl.Run("create", "namespace", namespace)
	}
	before := registry.Spec.Controllers.DeepCopy()
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Controllers = &operatorv1alpha1.Controllers{
			ClusterAPI: &operatorv1alpha1.ClusterAPI{Namespaces: []operatorv1alpha1.NamespaceName{operatorv1alpha1.NamespaceName(source)}, Labels: []operatorv1alpha1.LabelPattern{"tier"}},
			Exports:    []operatorv1alpha1.Export{{Format: operatorv1alpha1.ExportClusterProfile, Namespace: operatorv1alpha1.NamespaceName(target), Labels: []operatorv1alpha1.LabelPattern{"tier"}}},
		}
	})
	label := "registry.clusterregistry.io/" + registry.Name + "=" + e.Namespace
	e.WaitCondition(registry, operatorv1alpha1.ConditionControllerReady, metav1.ConditionFalse, operatorv1alpha1.ReasonNamespaceNotAllowed, "kubectl label namespace "+source+" "+target+" "+label)
	checkNeighborRights(t, e, registry, map[string]string{})

	kubectl.Run("label", "namespace", source, target, label)
	e.WaitCondition(registry, operatorv1alpha1.ConditionControllerReady, metav1.ConditionTrue, operatorv1alpha1.ReasonReady, "clusterAPI and exports run")
	checkNeighborRights(t, e, registry, map[string]string{source: "source", target: "target"})
	kubectl.Stdin(fmt.Sprintf(importedCluster, source)).Run("create", "-f", "-")
	prints(e, kubectl, "the entry of the imported cluster", "https://192.0.2.7:6443 "+source+"/imported gold  True",
		"get", "clusters.v1beta1.clusterregistry.k8s.io", "imported", "-o", `jsonpath={.spec.endpoints[0].url} {.spec.sourceRef.namespace}/{.spec.sourceRef.name} {.metadata.labels.tier} {.metadata.labels.internal} {.status.conditions[?(@.type=="Joined")].status}`)
	prints(e, kubectl, "its ClusterProfile", "clusterregistry."+e.Namespace+"."+registry.Name+" gold True",
		"get", "clusterprofiles", "imported", "-n", target, "-o", `jsonpath={.spec.clusterManager.name} {.metadata.labels.tier} {.status.conditions[?(@.type=="Joined")].status}`)

	kubectl.Run("delete", "pods", "-n", e.Namespace, "-l", "app.kubernetes.io/component=controller", "--wait=false")
	kubectl.Run("delete", "clusters.cluster.x-k8s.io", "imported", "-n", source)
	prints(e, kubectl, "the entry to say that the cluster was deleted", "False Deleted",
		"get", "clusters.v1beta1.clusterregistry.k8s.io", "imported", "-o", `jsonpath={.status.conditions[?(@.type=="Joined")].status} {.status.conditions[?(@.type=="Joined")].reason}`)
	kubectl.Run("delete", "clusters.v1beta1.clusterregistry.k8s.io", "imported")
	prints(e, kubectl, "the ClusterProfile to go with the entry", "", "get", "clusterprofiles", "imported", "-n", target, "--ignore-not-found", "-o", "name")

	kubectl.Run("label", "namespace", target, strings.Split(label, "=")[0]+"-")
	e.WaitCondition(registry, operatorv1alpha1.ConditionControllerReady, metav1.ConditionFalse, operatorv1alpha1.ReasonNamespaceNotAllowed, "kubectl label namespace "+target)
	checkNeighborRights(t, e, registry, map[string]string{source: "source"})
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Controllers = before })
	e.Eventually("no rights to be left in other namespaces", func(ctx context.Context) error {
		bindings := &rbacv1.RoleBindingList{}
		if err := e.Client.List(ctx, bindings, client.InNamespace(source)); err != nil {
			return err
		}
		if len(bindings.Items) > 0 {
			return fmt.Errorf("there are %d RoleBindings", len(bindings.Items))
		}
		return nil
	})
	e.WaitReady(registry)
}

// checkNeighborRights asks the host cluster what the controller may do in other namespaces:
// exactly what docs/reference/access.md says in those that are open, by their parts, and
// nothing elsewhere.
func checkNeighborRights(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, open map[string]string) {
	t.Helper()
	rights := map[string][]string{
		"source": {"get namespaces", "get configmaps", "get clusters.cluster.x-k8s.io", "list clusters.cluster.x-k8s.io", "watch clusters.cluster.x-k8s.io"},
		"target": {"get namespaces", "list clusterprofiles.multicluster.x-k8s.io", "create clusterprofiles.multicluster.x-k8s.io", "patch clusterprofiles.multicluster.x-k8s.io", "delete clusterprofiles.multicluster.x-k8s.io", "patch clusterprofiles/status.multicluster.x-k8s.io"},
	}
	asked := append([]string{"get secrets", "list secrets", "list configmaps", "create pods", "patch clusters.cluster.x-k8s.io", "update clusterprofiles.multicluster.x-k8s.io"}, append(rights["source"], rights["target"]...)...)
	account := "system:serviceaccount:" + e.Namespace + ":" + registry.Name + "-controller"
	for _, namespace := range []string{e.Namespace + "-capi", e.Namespace + "-profiles", "default"} {
		for _, right := range asked {
			verb, resource, _ := strings.Cut(right, " ")
			resource, group, _ := strings.Cut(resource, ".")
			resource, subresource, _ := strings.Cut(resource, "/")
			attributes := &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace}
			if resource == "namespaces" {
				attributes.Name = namespace
			}
			review, err := e.Kubernetes.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + e.Namespace, "system:authenticated"}, ResourceAttributes: attributes}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if want := slices.Contains(rights[open[namespace]], right); review.Status.Allowed != want {
				t.Errorf("%s in %s, which is %q: allowed %v, want %v", right, namespace, open[namespace], review.Status.Allowed, want)
			}
		}
	}
}

// prints waits until kubectl prints something.
func prints(e *framework.Env, kubectl *framework.Kubectl, what, want string, args ...string) {
	e.Eventually(what, func(context.Context) error {
		got, err := kubectl.Try(args...)
		if err != nil {
			return err
		}
		if strings.TrimSpace(got) != want {
			return fmt.Errorf("it prints %q", got)
		}
		return nil
	})
}

// Package namespaced tells the story of an operator that was installed for some
// namespaces only. It changes the operator that is installed in the cluster, and
// brings it back as it was.
package namespaced

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestNamespaced installs the operator for one namespace, and registries of both
// modes there and one elsewhere. The latter is left alone, and the operator may not
// do anything in its namespace.
func TestNamespaced(t *testing.T) {
	e, elsewhere := framework.New(t).WithOperator(), framework.New(t)
	kubectl := framework.NewKubectl(t, "v1.37.1", framework.ClusterKubeconfig(t))
	narrow(t, e, kubectl, e.Namespace)

	foreign := independent(elsewhere)
	elsewhere.Install(foreign)
	aggregated, own := e.Sample("aggregated-single.yaml"), independent(e)
	for _, registry := range []*operatorv1alpha1.ClusterRegistry{aggregated, own} {
		e.Install(registry)
	}
	e.WaitReady(aggregated)
	e.WaitReady(own)
	kubectl.Run("get", "crc")

	// Both of the others came after it, and are ready.
	if err := elsewhere.Get(t.Context(), foreign.Name, foreign); err != nil {
		t.Fatal(err)
	}
	if len(foreign.Finalizers) > 0 || len(foreign.Status.Conditions) > 0 {
		t.Errorf("a registry of another namespace was looked after: %v, %v", foreign.Finalizers, foreign.Status.Conditions)
	}
	made, err := elsewhere.Objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range made {
		t.Errorf("the operator has made %s", framework.Name(object))
	}

	for _, right := range []struct {
		verb, group, resource string
		here, there           bool
	}{
		{"get", "", "secrets", true, false},
		{"create", "", "secrets", true, false},
		{"list", "", "secrets", false, false},
		{"create", "apps", "deployments", true, false},
		{"patch", operatorv1alpha1.GroupName, "clusterregistries", true, false},
		{"list", "", "pods", true, false},
	} {
		for namespace, want := range map[string]bool{e.Namespace: right.here, elsewhere.Namespace: right.there, metav1.NamespaceSystem: false, "": false} {
			if got := may(t, e, namespace, right.verb, right.group, right.resource); got != want {
				t.Errorf("the operator may %s %s in namespace %q: %t, want %t", right.verb, right.resource, namespace, got, want)
			}
		}
	}
	e.Remove(aggregated)
	e.Remove(own)
	checkRefusals(t, e)
}

// independent returns a small registry at a port that the host chooses.
func independent(e *framework.Env) *operatorv1alpha1.ClusterRegistry {
	registry := e.Sample("independent-nodeport.yaml")
	registry.Spec.Server.Replicas, registry.Spec.Server.Service.NodePort = 1, 0
	return registry
}

// may asks the host what the operator may do in a namespace, in all when it is
// empty.
func may(t *testing.T, e *framework.Env, namespace, verb, group, resource string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               framework.OperatorUser,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + framework.OperatorNamespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource},
	}}
	answer, err := e.Kubernetes.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}

// checkRefusals looks for something that the operator tried and may not.
func checkRefusals(t *testing.T, e *framework.Env) {
	t.Helper()
	var pods corev1.PodList
	if err := e.Client.List(t.Context(), &pods, client.InNamespace(framework.OperatorNamespace), client.MatchingLabels{"app.kubernetes.io/name": "clusterregistry-operator"}); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, pod := range pods.Items {
		log, err := e.Kubernetes.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(log), "\n") {
			lines++
			if strings.Contains(line, "is forbidden") || strings.Contains(line, "cannot list") {
				t.Errorf("the operator lacks a right: %s", line)
			}
		}
	}
	if lines < 10 {
		t.Errorf("the operator's pods have logged %d lines", lines)
	}
}

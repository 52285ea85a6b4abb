package install

import (
	"context"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/e2e/framework/oldapi"
	"github.com/clusterregistry/operator/e2e/session"
)

// TestMatrixFederation lets a federation control plane that speaks as clients of cluster-registry
// v0.0.4 did read and write an aggregated registry through the host cluster, with a
// ServiceAccount that may do what an editor may; and types all that a user of kubectl does. In
// "make test", e2e/integration has both without the operator.
func TestMatrixFederation(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := e.Sample("aggregated-ha.yaml")
	e.Install(registry)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "federation", Namespace: e.Namespace}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: e.Namespace + "-federation"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.Namespace, Name: account.Name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "clusterregistry:editor"},
	}
	e.Create(account)
	framework.Create(t, e.Client, binding)
	t.Cleanup(func() {
		if err := e.Client.Delete(context.Background(), binding); err != nil {
			t.Errorf("delete ClusterRoleBinding %s: %v", binding.Name, err)
		}
	})
	token, err := e.Kubernetes.CoreV1().ServiceAccounts(e.Namespace).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plane := rest.AnonymousClientConfig(e.Config)
	plane.BearerToken = token.Status.Token
	e.WaitReady(registry)
	t.Run("kubectl", func(t *testing.T) { session.Run(t, framework.ClusterKubeconfig(t)) })
	for _, media := range []string{oldapi.JSON, oldapi.Protobuf} {
		t.Run(media, func(t *testing.T) { oldapi.CheckFederation(t, e.Config, plane, media) })
	}
}

package integration

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterregistry/operator/client/clientset/versioned"
	clustersv1alpha1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// asUser returns a client of a user of the host, whom the host's RBAC lets do
// everything with clusters and nothing else.
func asUser(t *testing.T, host *framework.Host, user string) clustersv1alpha1.ClusterInterface {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"clusterregistry.k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"*"}}}}
	create(t, hostClient(t, host.Config), role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	})
	config, err := clientcmd.BuildConfigFromFlags("", host.Kubeconfig(user))
	if err != nil {
		t.Fatal(err)
	}
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	clusters := clients.ClusterregistryV1alpha1().Clusters()
	// The host learns of a role through a watch, and the server keeps a refusal for a while.
	framework.Eventually(t, "user "+user+" to be let in", func(ctx context.Context) error {
		_, err := clusters.List(ctx, metav1.ListOptions{})
		return err
	})
	return clusters
}

package integration

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterregistry/operator/client/clientset/versioned"
	clustersv1alpha1 "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// userConfig returns how a user of the host connects to the host.
func userConfig(t *testing.T, host *framework.Host, user string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", host.Kubeconfig(user))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// direct returns a configuration that leads to the registry's server itself,
// around the host; the server asks the host about the user.
func direct(config *rest.Config, registry *framework.Registry) *rest.Config {
	out := rest.CopyConfig(config)
	out.Host = registry.URL()
	out.CAFile, out.CAData = "", registry.CA.PEM
	return out
}

func clustersOf(t *testing.T, config *rest.Config) clustersv1alpha1.ClusterInterface {
	t.Helper()
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients.ClusterregistryV1alpha1().Clusters()
}

// grant gives a user of the host a role of his own there.
func grant(t *testing.T, host *framework.Host, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	framework.Create(t, framework.HostClient(t, host.Config), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
	})
}

// asUser returns a client of a user of the host, whom the host's RBAC lets do
// everything with clusters and nothing else.
func asUser(t *testing.T, host *framework.Host, user string) clustersv1alpha1.ClusterInterface {
	t.Helper()
	grant(t, host, user, rbacv1.PolicyRule{APIGroups: []string{"clusterregistry.k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"*"}})
	clusters := clustersOf(t, userConfig(t, host, user))
	// The host learns of a role through a watch, and the server keeps a refusal for a while.
	framework.Eventually(t, "user "+user+" to be let in", func(ctx context.Context) error {
		_, err := clusters.List(ctx, metav1.ListOptions{})
		return err
	})
	return clusters
}

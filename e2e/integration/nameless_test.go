package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestNamelessReviews asks for clusters by name in every way there is, with a host whose
// webhook denies certain names to everyone, though roles allow them all. The server asks the
// host once about all names of a caller whose requests the host forwards, and exactly about
// everyone else. What the host has decided before does not count here.
func TestNamelessReviews(t *testing.T) {
	t.Parallel()
	var reviews atomic.Int64 // that the server asked the host for
	kubeconfig, _ := authorizationWebhook(t, func(spec authorizationv1.SubjectAccessReviewSpec) (status authorizationv1.SubjectAccessReviewStatus) {
		of := spec.ResourceAttributes
		if of == nil {
			return status
		}
		if spec.User == framework.ServerUser && of.Resource == "subjectaccessreviews" {
			reviews.Add(1)
		}
		status.Denied = of.Group == clusterregistry.GroupName && of.Name == "secret" || of.Verb == "impersonate" && of.Name == "ben"
		return status
	})
	host := framework.StartHostWith(t, newest, map[string]string{
		"authorization-mode": "Webhook,RBAC", "authorization-webhook-config-file": kubeconfig, "authorization-webhook-version": "v1",
		"authorization-webhook-cache-authorized-ttl": "1ms", "authorization-webhook-cache-unauthorized-ttl": "1ms",
	})
	admin := framework.HostClient(t, host.Config)
	framework.Create(t, admin, slices.Concat(framework.Delegation(), framework.AdmissionReads(),
		role("reader", rbacv1.PolicyRule{APIGroups: []string{clusterregistry.GroupName}, Resources: []string{"clusters"}, Verbs: []string{"get"}},
			user("ann"), user("ben"), rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts"}),
		role("one", rbacv1.PolicyRule{APIGroups: []string{clusterregistry.GroupName}, Resources: []string{"clusters"}, Verbs: []string{"get"}, ResourceNames: []string{"one"}}, user("eve")),
		role("pretender", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}}, user("mallory")))...)
	registry := framework.StartRegistry(t, append(host.ServerFlags(), "--etcd-servers="+host.Etcd, "--host-decision=Never")...)
	registry.WaitReady(t)
	host.AggregateRegistry(t, registry)

	token, _ := host.Tokens()
	directly := registry.Config(framework.Pair{})
	directly.BearerToken = token
	proxy := func(user, impersonated string) *rest.Config {
		config := registry.Config(host.FrontProxy)
		config.Impersonate.UserName = impersonated
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return transport.NewAuthProxyRoundTripper(user, "", []string{"system:authenticated"}, nil, next)
		})
		return config
	}
	impersonating := rest.CopyConfig(host.Config)
	impersonating.Impersonate = rest.ImpersonationConfig{UserName: "ann"}
	found, denied := apierrors.IsNotFound, apierrors.IsForbidden
	for _, test := range []struct {
		who    string
		config *rest.Config
		name   string
		want   func(error) bool
	}{
		{"through the host", as(t, host, "ann"), "one", found},
		{"through the host", as(t, host, "ann"), "secret", denied},
		{"through the host, impersonated there", impersonating, "one", found},
		{"through the host, impersonated there", impersonating, "secret", denied},
		{"with a role for one name", as(t, host, "eve"), "one", found},
		{"with a role for one name", as(t, host, "eve"), "two", denied},
		{"with a role for one name, at the server", proxy("eve", ""), "two", denied},
		{"with a token at the server", directly, "one", found},
		{"with a token at the server", directly, "secret", denied},
		{"by the front proxy's certificate, impersonating at the server", proxy("mallory", "ann"), "one", found},
		{"by the front proxy's certificate, impersonating at the server", proxy("mallory", "ann"), "secret", denied},
		{"by the front proxy's certificate, impersonating another one", proxy("mallory", "ben"), "one", denied},
		// The host would not have forwarded this one.
		{"by the front proxy's certificate", proxy("ann", ""), "secret", found},
	} {
		clusters := clustersOf(t, test.config)
		framework.Eventually(t, fmt.Sprintf("the answer for %q, asked for %s", test.name, test.who), func(ctx context.Context) error {
			if _, err := clusters.Get(ctx, test.name, metav1.GetOptions{}); !test.want(err) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	}
	before, began, clusters := reviews.Load(), time.Now(), clustersOf(t, as(t, host, "ben"))
	const names = 30
	for i := range names {
		if _, err := clusters.Get(t.Context(), fmt.Sprintf("new-%d", i), metav1.GetOptions{}); !found(err) {
			t.Fatal(err)
		}
	}
	// What is known of a caller is asked for again after ten seconds, and the host asks for the
	// schemas once a minute.
	took := time.Since(began)
	if n := reviews.Load() - before; n == 0 || n > 4+int64(took/(10*time.Second))+4*int64(1+took/time.Minute) {
		t.Errorf("%d requests for new names cost the host %d reviews", names, n)
	}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

// role returns a role with one rule, and its binding.
func role(name string, rule rbacv1.PolicyRule, subjects ...rbacv1.Subject) []client.Object {
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}},
	}
}

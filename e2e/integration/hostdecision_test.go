package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestHostDecision has a server go by what its host has decided on a request: it reviews
// nothing that the host has forwarded, and all that came in another way or that the host was
// not asked about. The host's webhook denies one name to everyone, though roles allow it.
func TestHostDecision(t *testing.T) {
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
		status.Denied = of.Group == clusterregistry.GroupName && of.Name == "secret"
		return status
	})
	host := framework.StartHostWith(t, newest, map[string]string{
		"authorization-mode": "Webhook,RBAC", "authorization-webhook-config-file": kubeconfig, "authorization-webhook-version": "v1",
		"authorization-webhook-cache-authorized-ttl": "1ms", "authorization-webhook-cache-unauthorized-ttl": "1ms",
	})
	admin := framework.HostClient(t, host.Config)
	verbs := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{clusterregistry.GroupName}, Resources: []string{"clusters"}, Verbs: verbs}
	}
	framework.Create(t, admin, append(framework.Delegation(), framework.AdmissionReads()...)...)
	framework.Create(t, admin, role("editor", verbs("get", "list", "update", "patch"), user("ann"), rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts"})...)
	framework.Create(t, admin, role("creator", verbs("get", "create"), user("dan"))...)
	framework.Create(t, admin, role("pretender", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}}, user("mallory"))...)
	registry := framework.StartRegistry(t, append(host.ServerFlags(), "--etcd-servers="+host.Etcd, "--guarded-fields=Enforce")...)
	registry.WaitReady(t)
	host.AggregateRegistry(t, registry)

	ann, next := clustersOf(t, as(t, host, "ann")), 0
	unknown := func(ctx context.Context) error {
		next++
		if _, err := ann.Get(ctx, fmt.Sprintf("new-%d", next), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("got %w", err)
		}
		return nil
	}
	framework.Eventually(t, "the host's decision to count", func(ctx context.Context) error {
		before := reviews.Load()
		if err := unknown(ctx); err != nil {
			return err
		}
		if reviews.Load() != before {
			return errors.New("the server has asked")
		}
		return nil
	})
	before, began := reviews.Load(), time.Now()
	for range 30 {
		if err := unknown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := ann.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// The first request of a connection between host and server is reviewed, and the host's own for
	// the schemas, which come once a minute.
	if n := reviews.Load() - before; n > 4+4*int64(1+time.Since(began)/time.Minute) {
		t.Errorf("60 requests that the host has forwarded cost it %d reviews", n)
	}
	whatIsStillAsked(t, host, registry)
	whatTheHostDidNotDecide(t, host)
}

// whatIsStillAsked sends requests that the host has not forwarded: each is reviewed.
func whatIsStillAsked(t *testing.T, host *framework.Host, registry *framework.Registry) {
	t.Helper()
	token, _ := host.Tokens()
	byToken := registry.Config(framework.Pair{})
	byToken.BearerToken = token
	byCertificate := registry.Config(framework.Pair{})
	of := as(t, host, "eve").TLSClientConfig
	byCertificate.CertData, byCertificate.KeyData, byCertificate.CertFile, byCertificate.KeyFile = of.CertData, of.KeyData, of.CertFile, of.KeyFile
	claiming := func(config *rest.Config, user string) *rest.Config {
		config = rest.CopyConfig(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return transport.NewAuthProxyRoundTripper(user, "", []string{"system:authenticated", "system:masters"}, nil, next)
		})
		return config
	}
	impersonating := registry.Config(host.FrontProxy)
	impersonating.Impersonate.UserName = "ann"
	impersonating.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.NewAuthProxyRoundTripper("mallory", "", []string{"system:authenticated"}, nil, next)
	})
	found, denied := apierrors.IsNotFound, apierrors.IsForbidden
	for _, test := range []struct {
		who    string
		config *rest.Config
		name   string
		want   func(error) bool
	}{
		{"through the host", as(t, host, "ann"), "one", found},
		{"through the host, which denies it", as(t, host, "ann"), "secret", denied},
		{"through the host, without a role", as(t, host, "eve"), "one", denied},
		{"with a token at the server", byToken, "one", found},
		{"with a token at the server", byToken, "secret", denied},
		{"with a certificate of the host at the server", byCertificate, "one", denied},
		{"with a certificate of the host at the server, claiming to be another one", claiming(byCertificate, "ann"), "one", denied},
		{"with a token at the server, claiming to be another one", claiming(byToken, "ann"), "secret", denied},
		{"by the front proxy's certificate, impersonating at the server", impersonating, "one", found},
		{"by the front proxy's certificate, impersonating at the server", impersonating, "secret", denied},
	} {
		clusters := clustersOf(t, test.config)
		framework.Eventually(t, fmt.Sprintf("the answer for %q, asked for %s", test.name, test.who), func(ctx context.Context) error {
			if _, err := clusters.Get(ctx, test.name, metav1.GetOptions{}); !test.want(err) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	}
}

// whatTheHostDidNotDecide sends requests through the host that need more than what it was
// asked about: a creation by an update, and guarded fields.
func whatTheHostDidNotDecide(t *testing.T, host *framework.Host) {
	t.Helper()
	ann, dan := clustersOf(t, as(t, host, "ann")), clustersOf(t, as(t, host, "dan"))
	plain := func(name string) *v1alpha1.Cluster {
		return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	guarded := plain("guarded")
	guarded.Spec.KubernetesAPIEndpoints.ServerEndpoints = []v1alpha1.ServerAddressByClientCIDR{{ServerAddress: "https://guarded.example"}}
	if _, err := ann.Update(t.Context(), plain("absent"), metav1.UpdateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "create") {
		t.Errorf("a creation by an update of someone who may not create: %v", err)
	}
	if _, err := dan.Create(t.Context(), guarded, metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "clusters/endpoints") {
		t.Errorf("a creation with an address of someone who may not set one: %v", err)
	}
	stored, err := dan.Create(t.Context(), plain("one"), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("a creation without one: %v", err)
	}
	stored.Labels = map[string]string{"a": "b"}
	if _, err := dan.Update(t.Context(), stored, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("an update of someone who may not, which the host denies: %v", err)
	}
	if stored, err = ann.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("an update of a label: %v", err)
	}
	stored.Spec = guarded.Spec
	if _, err := ann.Update(t.Context(), stored, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "clusters/endpoints") {
		t.Errorf("an update of the address of someone who may not: %v", err)
	}
}

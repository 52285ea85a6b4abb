package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/e2e/framework"
)

func listClusters(ctx context.Context, t *testing.T, config *rest.Config) error {
	t.Helper()
	_, err := clustersOf(t, config).List(ctx, metav1.ListOptions{})
	return err
}

// TestIndependentRoles gives people roles and takes them away.
func TestIndependentRoles(t *testing.T) {
	t.Parallel()
	registry, clients, admin := independent(t)
	ann := registry.Config(clients.Issue("ann", []string{"fleet"}))
	if err := listClusters(t.Context(), t, ann); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "ann" cannot list resource "clusters"`) {
		t.Errorf("ann, who holds nothing: %v", err)
	}
	masters := registry.Config(clients.Issue("root", []string{"system:masters"}))
	pretender := rest.CopyConfig(admin)
	pretender.Impersonate = rest.ImpersonationConfig{UserName: "root", Groups: []string{"system:masters"}}
	for who, config := range map[string]*rest.Config{"a certificate": masters, "an impersonation": pretender} {
		if err := listClusters(t.Context(), t, config); !apierrors.IsForbidden(err) {
			t.Errorf("system:masters by %s: %v", who, err)
		}
	}

	bindings := clientset(t, admin).RbacV1().ClusterRoleBindings()
	viewers := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "viewers"},
		// The fields that are left out get the defaults of Kubernetes.
		RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "clusterregistry:viewer"}, Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "fleet"}}}
	stored, err := bindings.Create(t.Context(), viewers, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if stored.RoleRef.APIGroup != rbacv1.GroupName || stored.Subjects[0].APIGroup != rbacv1.GroupName {
		t.Errorf("defaults are missing: %+v", stored)
	}
	framework.Eventually(t, "ann to see clusters", func(ctx context.Context) error { return listClusters(ctx, t, ann) })
	stored.RoleRef.Name = "clusterregistry:editor"
	if _, err := bindings.Update(t.Context(), stored, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "delete it and create a new one") {
		t.Errorf("another role: %v", err)
	}
	if err := bindings.Delete(t.Context(), "viewers", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	framework.Eventually(t, "ann to see clusters no more", func(ctx context.Context) error {
		if err := listClusters(ctx, t, ann); !apierrors.IsForbidden(err) {
			return fmt.Errorf("listing gives %w", err)
		}
		return nil
	})
	if _, err := clientset(t, admin).RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sum"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}}, metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "does not aggregate") {
		t.Errorf("an aggregation: %v", err)
	}
}

// TestIndependentBootstrap damages the bootstrap roles; the next server that
// starts mends them, but for those that their owner keeps.
func TestIndependentBootstrap(t *testing.T) {
	t.Parallel()
	clients, etcd := framework.NewAuthority(t, "clients"), framework.StartEtcd(t, 1)
	start := func() *rest.Config {
		registry := framework.StartRegistry(t, append(etcd.Flags(), "--mode=independent", "--client-ca-file="+clients.File)...)
		registry.WaitReady(t)
		return registry.Config(clients.Issue("root", admins))
	}
	roles := clientset(t, start()).RbacV1().ClusterRoles()
	viewer, err := roles.Get(t.Context(), "clusterregistry:viewer", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := roles.Delete(t.Context(), viewer.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, patch := range map[string]string{
		"clusterregistry:discovery": `{"rules":[{"verbs":["get"],"nonResourceURLs":["/own"]}]}`,
		"clusterregistry:editor":    `{"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}},"rules":[]}`,
	} {
		if _, err := roles.Patch(t.Context(), name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	roles = clientset(t, start()).RbacV1().ClusterRoles()
	rules := func(name string) (rules int, paths string) {
		role, err := roles.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			paths += strings.Join(rule.NonResourceURLs, " ")
		}
		return len(role.Rules), paths
	}
	if n, _ := rules(viewer.Name); n != len(viewer.Rules) {
		t.Errorf("the deleted role has %d rules, and had %d", n, len(viewer.Rules))
	}
	if _, paths := rules("clusterregistry:discovery"); !strings.Contains(paths, "/own") || !strings.Contains(paths, "/apis/*") {
		t.Errorf("the changed role allows %s", paths)
	}
	if n, _ := rules("clusterregistry:editor"); n != 0 {
		t.Errorf("the role that its owner keeps has %d rules", n)
	}
}

// TestIndependentWebhook lets another server decide on requests.
func TestIndependentWebhook(t *testing.T) {
	t.Parallel()
	asked := make(chan authorizationv1.SubjectAccessReviewSpec, 100)
	kubeconfig, end := authorizationWebhook(t, func(spec authorizationv1.SubjectAccessReviewSpec) (status authorizationv1.SubjectAccessReviewStatus) {
		asked <- spec
		status.Allowed = spec.User == "ann" && spec.ResourceAttributes != nil && spec.ResourceAttributes.Verb == "list"
		return status
	})
	registry, clients, admin := independent(t, "--authorization-webhook-config-file="+kubeconfig)
	if err := listClusters(t.Context(), t, registry.Config(clients.Issue("ann", nil))); err != nil {
		t.Error(err)
	}
	if spec := <-asked; spec.User != "ann" || spec.ResourceAttributes.Resource != "clusters" || spec.ResourceAttributes.Group != "clusterregistry.k8s.io" {
		t.Errorf("the webhook was asked %+v", spec)
	}
	if err := listClusters(t.Context(), t, admin); !apierrors.IsForbidden(err) {
		t.Errorf("an admin of whom the webhook knows nothing: %v", err)
	}
	end()
	if err := listClusters(t.Context(), t, registry.Config(clients.Issue("eve", nil))); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without its webhook, the server answered %v", err)
	}
}

// authorizationWebhook starts a server that answers reviews, and returns a kubeconfig for it,
// and what ends it before the test does.
func authorizationWebhook(t *testing.T, decide func(authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus) (kubeconfig string, end func()) {
	t.Helper()
	webhook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Status = decide(review.Spec)
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(webhook.Close)
	kubeconfig = t.TempDir() + "/webhook"
	config := clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{"w": {Server: webhook.URL}}, Contexts: map[string]*clientcmdapi.Context{"w": {Cluster: "w"}}, CurrentContext: "w"}
	if err := clientcmd.WriteToFile(config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, webhook.Close
}

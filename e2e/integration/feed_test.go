package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/internal/contract"
)

// feedAudience is whom the tokens for the feed of the hub's controller are for.
const feedAudience = "https://hub-controller.default.svc"

// feed is how programs ask the hub's controller for clusters.
type feed struct {
	h       *hub
	address string
	client  *http.Client
}

// feed returns how its controller is asked, and the flags by which it answers.
func (h *hub) feed(hosts string) (feed, []string) {
	h.t.Helper()
	shown, key, err := cert.GenerateSelfSignedCertKey("hub-controller.default.svc", nil, nil)
	h.must(err)
	directory := h.t.TempDir()
	file := func(name string, content []byte) string {
		h.must(os.WriteFile(filepath.Join(directory, name), content, 0o600))
		return filepath.Join(directory, name)
	}
	settings := fmt.Sprintf(`{"labels": ["tier"], "providers": [{"name": "secretreader", "hosts": [%q]}]}`, hosts)
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "asks"}
	h.must(h.Create(h.t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}}))
	h.must(h.Create(h.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: role, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "profiles"}}}))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(shown)
	f := feed{h: h, address: fmt.Sprintf("127.0.0.1:%d", framework.FreePort(h.t))}
	f.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "hub-controller.default.svc", MinVersion: tls.VersionTLS12}}}
	h.t.Cleanup(f.client.CloseIdleConnections)
	return f, []string{
		"--feed-file=" + file("feed.json", []byte(settings)), "--feed-bind-address=" + f.address,
		"--feed-tls-cert-file=" + file("tls.crt", shown), "--feed-tls-private-key-file=" + file("tls.key", key),
	}
}

// account makes a ServiceAccount with permissions, and returns a token of it for an audience.
func (f feed) account(name, audience string, may ...rbacv1.PolicyRule) string {
	f.h.t.Helper()
	meta := metav1.ObjectMeta{Name: name, Namespace: "default"}
	f.h.must(f.h.Create(f.h.t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}))
	f.h.must(f.h.Create(f.h.t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: may}))
	f.h.must(f.h.Create(f.h.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: "default"}}}))
	var audiences []string // those of the API server
	if audience != "" {
		audiences = []string{audience}
	}
	made, err := clientset(f.h.t, f.h.host.Config).CoreV1().ServiceAccounts("default").CreateToken(f.h.t.Context(), name, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}, metav1.CreateOptions{})
	f.h.must(err)
	return made.Status.Token
}

// ask returns the status and the body of an answer.
func (f feed) ask(ctx context.Context, token, path string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+f.address+path, nil)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := f.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// testFeed has programs of several users ask for the clusters, of which "feed" is in none of
// the ClusterSets, by the tokens and the permissions of a real host cluster.
func (h *hub) testFeed(f feed) {
	h.t.Helper()
	const group = "clusterregistry.k8s.io"
	lists := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"clusters"}, Verbs: []string{"list"}}
	sees := func(names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"clustersets/clusters"}, Verbs: []string{"get"}, ResourceNames: names}
	}
	all := f.account("feed-all", feedAudience, lists, sees())
	framework.Eventually(h.t, "to say that all clusters are there", func(ctx context.Context) error {
		accept := fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, contract.FeedAnsweredAnnotation, contract.FeedAccept)
		_, err := clientset(h.t, h.host.Config).CoordinationV1().Leases("default").Patch(ctx, "clusterregistry-controller", types.MergePatchType, []byte(accept), metav1.PatchOptions{})
		return err
	})
	framework.Eventually(h.t, "an answer with an address", func(ctx context.Context) error {
		status, body, err := f.ask(ctx, all, "/v1/flux?labelSelector=tier%3Diron")
		var said struct{ Inputs []map[string]any }
		if err == nil {
			err = json.Unmarshal([]byte(body), &said)
		}
		if err != nil || len(said.Inputs) != 1 || said.Inputs[0]["address"] != h.at+"/feed" || said.Inputs[0]["ca"] == "" || said.Inputs[0]["verified"] != true {
			return fmt.Errorf("%d: %s: %w", status, body, err)
		}
		return nil
	})
	for reason, test := range map[string]struct {
		token, path string
		status      int
		has         bool
	}{
		"one that sees all":          {all, "/v1/clusters.csv", http.StatusOK, true},
		"one that sees its set":      {f.account("feed-set", feedAudience, lists, sees("payments")), "/v1/clusters.csv", http.StatusOK, false},
		"one that may not list":      {f.account("feed-none", feedAudience, sees()), "/v1/clusters.csv", http.StatusForbidden, false},
		"a token for the API server": {f.account("feed-other", "", lists, sees()), "/v1/clusters.csv", http.StatusUnauthorized, false},
		"half a filter":              {all, "/v1/clusters.csv?labelSelector=tier%3Diron;x", http.StatusBadRequest, false},
	} {
		framework.Eventually(h.t, reason, func(ctx context.Context) error { // what is denied is confirmed first
			status, body, err := f.ask(ctx, test.token, test.path)
			if err != nil || status != test.status || strings.Contains(body, "feed,") != test.has {
				return fmt.Errorf("%d: %s: %w", status, body, err)
			}
			return nil
		})
	}
	framework.Eventually(h.t, "what was answered to be kept", func(ctx context.Context) error {
		lease, err := clientset(h.t, h.host.Config).CoordinationV1().Leases("default").Get(ctx, "clusterregistry-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if kept := lease.Annotations[contract.FeedAnsweredAnnotation]; !strings.Contains(kept, `"feed"`) {
			return fmt.Errorf("it is %q", kept)
		}
		return nil
	})
	h.change("feed", func(c *v1beta1.Cluster) { c.Labels["tier"] = "steel" })
	framework.Eventually(h.t, "the change to be told", func(ctx context.Context) error {
		status, body, err := f.ask(ctx, all, "/v1/clusters.json?labelSelector=tier%3Dsteel")
		if err != nil || !strings.Contains(body, `"name":"feed"`) {
			return fmt.Errorf("%d: %s: %w", status, body, err)
		}
		return nil
	})
}

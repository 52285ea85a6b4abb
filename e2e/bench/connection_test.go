package bench

import (
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	// user is whom the contestants serve, unless they are an administrator's.
	user          = "bench"
	administrator = ", administrator"
)

// allow lets the user do everything with clusters.
func allow(t *testing.T, config *rest.Config, group string) {
	t.Helper()
	name := user + "-" + strings.ReplaceAll(group, ".", "-")
	framework.Create(t, framework.HostClient(t, config),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{group}, Resources: []string{"clusters", "clusters/status"}, Verbs: []string{"*"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}})
}

// connect gives a contestant so many connections.
func (c *contestant) connect(t *testing.T, count int) {
	t.Helper()
	config := c.user
	if c.administrator {
		config = c.site.administrator
	}
	for range count {
		c.connections = append(c.connections, newConnection(t, config))
	}
}

// with returns the contestant with so many of its connections.
func (c *contestant) with(connections int) *contestant {
	fewer := *c
	fewer.connections = c.connections[:connections]
	return &fewer
}

// newConnection returns a client whose connection is no other's. Answers are
// not compressed: zipping would hide what encoding costs.
func newConnection(t *testing.T, config *rest.Config) *http.Client {
	t.Helper()
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, DisableCompression: true, MaxIdleConnsPerHost: watchers}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// address returns the start of a server's URLs.
func address(config *rest.Config) string { return strings.TrimSuffix(config.Host, "/") }

package integration

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/e2e/framework"
)

// testProtectedPaths asks the server itself for what tells of its inner life.
func testProtectedPaths(t *testing.T, host *framework.Host, registry *framework.Registry) {
	grant(t, host, "observer", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics", "/metrics/slis", "/debug/*"}, Verbs: []string{"get"}})
	observer := direct(userConfig(t, host, "observer"), registry)
	framework.Eventually(t, "the observer to be let in", func(context.Context) error {
		if got := status(t, observer, "/metrics"); got != http.StatusOK {
			return fmt.Errorf("status %d", got)
		}
		return nil
	})
	// Alice may do everything with clusters.
	alice := direct(userConfig(t, host, "alice"), registry)
	for _, path := range []string{"/metrics", "/metrics/slis", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine"} {
		for who, test := range map[string]struct {
			config *rest.Config
			want   int
		}{
			"nobody":       {rest.AnonymousClientConfig(alice), http.StatusUnauthorized},
			"a plain user": {alice, http.StatusForbidden},
			"the observer": {observer, http.StatusOK},
		} {
			if got := status(t, test.config, path); got != test.want {
				t.Errorf("%s for %s: status %d, want %d", path, who, got, test.want)
			}
		}
	}
	for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusOK, "/healthz": http.StatusOK, "/version": http.StatusOK, "/apis": http.StatusUnauthorized, "/livez/etcd": http.StatusUnauthorized} {
		if got := status(t, rest.AnonymousClientConfig(alice), path); got != want {
			t.Errorf("%s for nobody: status %d, want %d", path, got, want)
		}
	}
	if _, err := clustersOf(t, observer).List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the observer may list clusters")
	}
}

package clusterregistry

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// hostWith returns how to reach a host through which a registry serves v1alpha1
// and v1beta1, or fails.
func hostWith(t *testing.T, serves bool) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		group, resource, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/"), "/clusters")
		switch {
		case !serves:
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "ServiceUnavailable", "code": 503, "message": "no"}`)
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"kind": "Cluster", "apiVersion": %q, "metadata": {"name": "a"}}`, group)
		case strings.HasSuffix(r.URL.Path, "/clusters"+resource) && strings.Contains(r.URL.Path, "/clusters"):
			fmt.Fprintf(w, `{"kind": "ClusterList", "apiVersion": %q, "metadata": {}, "items": []}`, group)
		default:
			fmt.Fprintf(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": %q, "resources": [{"name": "clusters", "kind": "Cluster", "verbs": ["get"]}]}`, group)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// TestUpgradeVerifies has an upgrade use the registry as clients do, through the host.
func TestUpgradeVerifies(t *testing.T) {
	for serves, want := range map[bool]string{true: "StorageMigration", false: "Verification"} {
		s := upgrading(t, "v0.1.0", "v0.2.0", "Verification", "")
		if v := s.plan(released); !v.Complete() {
			t.Fatal(v)
		}
		r := reading(t)
		r.Host = hostWith(t, serves)
		if v := r.advance(t.Context(), s); v.Complete() || string(s.upgrade.Phase) != want || !serves && !strings.Contains(v.Message, "clusterregistry.k8s.io/v1alpha1 is not discovered") {
			t.Errorf("serves %v: in phase %s: %+v", serves, s.upgrade.Phase, v)
		}
	}
	s := upgrading(t, "v0.1.0", "v0.2.0", "Verification", "")
	s.registry.Spec.Mode = "Independent"
	if client, err := (upgradeActions{reading(t), s}).Client(t.Context()); client != nil || err == nil || !strings.Contains(err.Error(), "there is no Secret fleet-admin") {
		t.Errorf("without the administrator's certificate: %v, %v", client, err)
	}
}

package integration

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/e2e/framework"
)

// testNoCompression asks the server for gzip, as the host's proxy does on its
// own, with an answer that is large enough for it.
func testNoCompression(t *testing.T, host *framework.Host, registry *framework.Registry) {
	config := direct(host.Config, registry)
	large := cluster("large", nil)
	large.Annotations = map[string]string{"text": strings.Repeat("x", 200<<10)}
	clusters := clustersOf(t, config)
	if _, err := clusters.Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, registry.URL()+"/apis/clusterregistry.k8s.io/v1alpha1/clusters", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if encoding := response.Header.Get("Content-Encoding"); response.StatusCode != http.StatusOK || encoding != "" {
		t.Errorf("status %s, compressed by %q", response.Status, encoding)
	}
	if err := clusters.Delete(t.Context(), large.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

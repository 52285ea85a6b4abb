package integration

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/clusterregistry/operator/e2e/framework"
)

// testReadiness starts another server of the registry and, the moment that it
// is ready, asks it as the host's front proxy does for a user, who must be let in.
func testReadiness(t *testing.T, host *framework.Host) {
	registry := framework.StartRegistry(t, append(host.ServerFlags(), "--etcd-servers="+host.Etcd)...)
	certificate, err := tls.LoadX509KeyPair(host.FrontProxy.Cert, host.FrontProxy.Key)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string, config *tls.Config, header http.Header) (int, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, registry.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = header
		response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}).Do(request)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		return response.StatusCode, errors.Join(err, response.Body.Close())
	}
	nobody := &tls.Config{InsecureSkipVerify: true}                                                   //nolint:gosec // the server's identity is not the point
	frontProxy := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate}} //nolint:gosec // the same
	for deadline := time.Now().Add(5 * time.Minute); ; {
		status, err := ask("/readyz", nobody, http.Header{})
		if err == nil && status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready: status %d, %v", status, err)
		}
		time.Sleep(time.Millisecond) // the framework's waits are too slow to meet the moment
	}
	status, err := ask("/apis/clusterregistry.k8s.io/v1alpha1/clusters", frontProxy, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}})
	if err != nil || status != http.StatusOK {
		t.Errorf("the first request of a user: status %d, %v", status, err)
	}
}

package integration

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/e2e/framework"
)

// testStrangers asks the server directly, around the host: nobody is let in by
// claiming to be somebody.
func testStrangers(t *testing.T, host *framework.Host, registry *framework.Registry) {
	valid, expired := host.Tokens()
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the server's identity is not the point
	imposter := framework.NewAuthority(t, "front-proxy-ca").Issue("front-proxy-client", []string{"system:masters"})
	certificate, err := tls.LoadX509KeyPair(imposter.Cert, imposter.Key)
	if err != nil {
		t.Fatal(err)
	}
	withCertificate := transport.Clone()
	withCertificate.TLSClientConfig.Certificates = []tls.Certificate{certificate}
	for reason, test := range map[string]struct {
		transport *http.Transport
		header    http.Header
		status    int
	}{
		// Not forbidden: the host is not even asked what they may.
		"nobody":                      {transport, nil, http.StatusUnauthorized},
		"front-proxy headers alone":   {transport, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, http.StatusUnauthorized},
		"a token of nobody":           {transport, bearer("nonsense"), http.StatusUnauthorized},
		"a token without a role":      {transport, bearer(valid), http.StatusForbidden},
		"an expired token":            {transport, bearer(expired), http.StatusUnauthorized},
		"a certificate of another CA": {withCertificate, http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}}, http.StatusUnauthorized},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, registry.URL()+"/apis/clusterregistry.k8s.io/v1alpha1/clusters", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = test.header.Clone()
		if request.Header == nil {
			request.Header = http.Header{}
		}
		response, err := (&http.Client{Transport: test.transport}).Do(request)
		if err != nil {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Error(err)
		}
		var status metav1.Status
		if response.StatusCode != test.status || json.Unmarshal(body, &status) != nil {
			t.Errorf("%s: status %d, want %d: %s", reason, response.StatusCode, test.status, body)
		}
	}
}

package integration

import (
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestIndependentOneUserLeavesRoom has one user keep as many writes in flight as
// the server takes, with bodies that never end. Probes and other users get
// through all the same.
func TestIndependentOneUserLeavesRoom(t *testing.T) {
	registry, clients, admin := independent(t, "--max-requests-inflight=4", "--max-mutating-requests-inflight=4")
	greedy := registry.Config(clients.Issue("greedy", admins))
	refused := make(chan refusal)
	const tries = 20
	for range tries {
		go func() { refused <- endless(t, greedy) }()
	}
	// Each of them got its own answer or none; when all that can be refused are,
	// the others are in flight.
	for i := range tries - 2 {
		if got := <-refused; got.status != http.StatusTooManyRequests || got.retryAfter == "" {
			t.Errorf("request %d: %+v", i, got)
		}
	}
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		if got := status(t, registry.Config(framework.Pair{}), path); got != http.StatusOK {
			t.Errorf("GET %s by a probe: %d", path, got)
		}
	}
	if _, err := clustersOf(t, admin).Create(t.Context(), cluster("room", nil), metav1.CreateOptions{}); err != nil {
		t.Errorf("a write of another user: %v", err)
	}
}

// refusal is what a server says of a request that it does not take.
type refusal struct {
	status     int
	retryAfter string
}

// endless begins to create a cluster and never comes to the end of it. It
// returns the server's answer, an empty one if there was none before the test ended.
func endless(t *testing.T, config *rest.Config) refusal {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Error(err)
		return refusal{}
	}
	// A server answers only once it has read the body, unless that is still to be sent.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tls, ExpectContinueTimeout: time.Minute}}
	defer client.CloseIdleConnections()
	body, never := io.Pipe()
	defer func() { _ = never.Close() }()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+"/apis/clusterregistry.k8s.io/v1beta1/clusters", body)
	if err != nil {
		t.Error(err)
		return refusal{}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Expect", "100-continue")
	response, err := client.Do(request)
	if err != nil {
		return refusal{}
	}
	_ = response.Body.Close()
	return refusal{response.StatusCode, response.Header.Get("Retry-After")}
}

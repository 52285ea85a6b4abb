package probe

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/lookup/lookuptest"
)

// TestNameThatChanges has a name that leads elsewhere when it is asked for again: each
// connection is checked for itself, in one probe and in the next.
func TestNameThatChanges(t *testing.T) {
	ca := newAuthority(t)
	names := lookuptest.New("127.0.0.1", "169.254.169.254")
	endpoint := serve(t, ca.issue(leaf()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // so that the second GET needs another connection
		kubernetes("v1.37.1").ServeHTTP(w, r)
	}))
	_, port, err := net.SplitHostPort(endpoint.URL[len("https://"):])
	if err != nil {
		t.Fatal(err)
	}
	prober := &Prober{loopback: true, resolver: names.Resolver(t)}
	target := Target{Field: "spec.endpoints[0]", Endpoint: v1beta1.Endpoint{URL: "https://api.example.com.:" + port, TLSServerName: "api.example.com", CABundle: ca.pem()}}
	if got := prober.Probe(t.Context(), target); got.Outcome != Ready || got.Version != "" {
		t.Errorf("the second connection: %+v", got)
	}
	if got := prober.Probe(t.Context(), target); got.Outcome != NotAsked || got.Reason != ReasonAddressRefused {
		t.Errorf("the second probe: %+v", got)
	}
	if answers := names.Answers(); len(answers) != 3 {
		t.Errorf("the name was resolved to %v", answers)
	}
}

// TestSilentDNS has the probe's time pass before DNS answers: that, and not the API server,
// is what does not answer.
func TestSilentDNS(t *testing.T) {
	proxy, err := ParseProxy("http://proxy.example.com.:3128")
	if err != nil {
		t.Fatal(err)
	}
	names := lookuptest.New()
	names.Turn(lookuptest.Ignore)
	prober := &Prober{loopback: true, timeout: 2 * time.Second, resolver: names.Resolver(t), Proxies: []Proxy{proxy}}
	for _, test := range []struct {
		endpoint     v1beta1.Endpoint
		reason, says string
	}{
		{v1beta1.Endpoint{URL: "https://api.example.com."}, ReasonDNSFailed, "DNS does not resolve the name api.example.com. now."},
		{v1beta1.Endpoint{URL: "https://api.example.com", ProxyURL: proxy.String()}, ReasonProxyFailed, "There is no connection to the proxy http://proxy.example.com.:3128."},
	} {
		if got := prober.Probe(t.Context(), Target{Endpoint: test.endpoint}); got.Outcome != Failed || got.Reason != test.reason || got.Message != test.says {
			t.Errorf("%s: %+v, want %s with %q", test.endpoint.URL, got, test.reason, test.says)
		}
	}
}

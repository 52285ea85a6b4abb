package probe

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/address"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// tunnel is a proxy that connects every CONNECT to one address, as if that had the name.
type tunnel struct {
	to     string
	status int

	mu    sync.Mutex
	asked []string
}

func (p *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host)
	p.mu.Unlock()
	if p.status != 0 {
		w.WriteHeader(p.status)
		_, _ = io.WriteString(w, "do not repeat this")
		return
	}
	target, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.WriteHeader(http.StatusOK)
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(target, buffered); _ = target.Close() }()
	_, _ = io.Copy(conn, target)
	_ = conn.Close()
}

// via returns a prober that may use a proxy, and the proxy's URL.
func via(t *testing.T, p *tunnel, certificate *tls.Certificate, roots *x509.CertPool) (*Prober, string) {
	t.Helper()
	server := httptest.NewUnstartedServer(p)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	if certificate != nil {
		server.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	allowed, err := ParseProxy(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &Prober{Proxies: []Proxy{allowed}, proxyRoots: roots}, server.URL
}

// TestProxy probes a cluster whose name only the proxy knows: the certificate is verified
// against the entry's CA nevertheless, and the proxy is asked for nothing but a tunnel.
func TestProxy(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	endpoint := serve(t, ca.issue(leaf()), kubernetes("v1.37.1"))
	pair := other.issue(leaf())
	roots := x509.NewCertPool()
	roots.AddCert(other.cert)
	for _, test := range []struct {
		reason string
		pair   *tls.Certificate
		roots  *x509.CertPool
		proxy  *tunnel
		bundle []byte
		want   string
		says   string
	}{
		{"http", nil, nil, &tunnel{}, ca.pem(), ReasonReady, ""},
		{"https", &pair, roots, &tunnel{}, ca.pem(), ReasonReady, ""},
		{"https of a stranger", &pair, nil, &tunnel{}, ca.pem(), ReasonProxyFailed, "CA that the system trusts"},
		{"https of the entry's CA", &pair, nil, &tunnel{}, other.pem(), ReasonProxyFailed, "CA that the system trusts"},
		{"a proxy that leads elsewhere", nil, nil, &tunnel{}, other.pem(), ReasonCertificateUntrusted, "not signed by the entry's CA"},
		{"a proxy that refuses", nil, nil, &tunnel{status: 403}, ca.pem(), ReasonProxyFailed, "it answers 403"},
		{"a proxy that wants a password", nil, nil, &tunnel{status: 407}, ca.pem(), ReasonProxyFailed, "it answers 407"},
		{"a proxy that leads on", nil, nil, &tunnel{status: 302}, ca.pem(), ReasonProxyFailed, "it answers 302"},
	} {
		test.proxy.to = strings.TrimPrefix(endpoint.URL, "https://")
		prober, address := via(t, test.proxy, test.pair, test.roots)
		got := prober.Probe(t.Context(), Target{Field: "spec.endpoints[0]", Endpoint: v1beta1.Endpoint{
			URL: "https://api.example.com:6443", ProxyURL: address + "/", CABundle: test.bundle,
		}})
		if got.Reason != test.want || !strings.Contains(got.Message, test.says) || strings.Contains(got.Message, "repeat") {
			t.Errorf("%s: %+v, want %s with %q", test.reason, got, test.want, test.says)
		}
		for _, asked := range test.proxy.asked {
			if asked != "CONNECT api.example.com:6443" {
				t.Errorf("%s: the proxy is asked %s", test.reason, asked)
			}
		}
	}
}

// TestProxyIsLimited asks no proxy that is not allowed, and an allowed one for nothing
// that could not be dialed from here either.
func TestProxyIsLimited(t *testing.T) {
	p := &tunnel{}
	prober, address := via(t, p, nil, nil)
	prober.Policy.HostCIDRs = func() []netip.Prefix { return prefixes("10.96.0.0/12") }
	for _, test := range []struct{ url, proxy, want, says string }{
		{"https://api.example.com", "http://127.0.0.1:1", ReasonProxied, "spec.endpoints[0].proxyURL"},
		{"https://api.example.com", "http://proxy.example.com", ReasonProxied, "health.allowedProxies (--health-allowed-proxies)"},
		{"https://api.example.com", strings.Replace(address, "http:", "https:", 1), ReasonProxied, "proxyURL"},
		{"https://api.example.com", strings.Replace(address, "http:", "socks5:", 1), ReasonProxied, "proxyURL"},
		{"https://api.example.com", address + "/path", ReasonProxied, "proxyURL"},
		{"https://127.0.0.1:6443", address, ReasonAddressRefused, "a loopback address"},
		{"https://[::ffff:127.0.0.1]", address, ReasonAddressRefused, "a loopback address"},
		{"https://localhost", address, ReasonAddressRefused, "a loopback address"},
		{"https://API.LocalHost.:6443", address, ReasonAddressRefused, "a loopback address"},
		{"https://169.254.169.254", address, ReasonAddressRefused, "metadata"},
		{"https://10.96.0.1", address, ReasonAddressRefused, "health.allowedCIDRs"},
		{"https://127.1", address, ReasonAddressRefused, "in a form"},
		{"https://2130706433", address, ReasonAddressRefused, "in a form"},
		{"https://127.0.0.0x1", address, ReasonAddressRefused, "in a form"},
		{"https://0177.0.0.1", address, ReasonAddressRefused, "in a form"},
	} {
		got := prober.Probe(t.Context(), Target{Endpoint: v1beta1.Endpoint{URL: test.url, ProxyURL: test.proxy}, Field: "spec.endpoints[0]"})
		if got.Outcome != NotAsked || got.Reason != test.want || !strings.Contains(got.Message, test.says) {
			t.Errorf("%s by %s: %+v, want %s with %q", test.url, test.proxy, got, test.want, test.says)
		}
	}
	if len(p.asked) != 0 {
		t.Errorf("the proxy is asked %v", p.asked)
	}
}

// TestProxyAddress dials an allowed proxy in the host cluster's ranges, and where nothing
// may be dialed only by the very address that the administrator has named.
func TestProxyAddress(t *testing.T) {
	prober := &Prober{Policy: address.Policy{HostCIDRs: func() []netip.Prefix { return prefixes("10.96.0.0/12") }}}
	for _, test := range []struct {
		proxy, dialed string
		allowed       bool
	}{
		{"http://proxy.fleet.svc:3128", "10.96.0.9:3128", true},
		{"http://proxy.example.com:3128", "192.0.2.1:3128", true},
		{"http://proxy.example.com:3128", "127.0.0.1:3128", false},
		{"http://proxy.example.com:3128", "169.254.169.254:3128", false},
		{"http://127.0.0.1:3128", "127.0.0.1:3128", true},
		{"http://127.0.0.1:3128", "127.0.0.2:3128", false},
	} {
		proxy, err := ParseProxy(test.proxy)
		if err != nil {
			t.Fatal(err)
		}
		if err := prober.admitProxy(proxy, test.dialed); (err == nil) != test.allowed {
			t.Errorf("%s at %s: %v", test.proxy, test.dialed, err)
		}
	}
	named, err := ParseProxy("http://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	prober.Proxies = []Proxy{named}
	got := prober.Probe(t.Context(), Target{Endpoint: v1beta1.Endpoint{URL: "https://api.example.com", ProxyURL: "http://localhost:1"}})
	if got.Outcome != NotAsked || got.Reason != ReasonAddressRefused || !strings.Contains(got.Message, "The proxy http://localhost:1") {
		t.Errorf("%+v", got)
	}
}

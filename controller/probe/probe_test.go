package probe

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/apis/clusterregistry/address"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/lookup/lookuptest"
)

// authority signs certificates of servers.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	pair := a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// issue completes and signs a certificate; the first one is the authority's own.
func (a *authority) issue(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// leaf is the template of a certificate that a server on loopback can show.
func leaf() *x509.Certificate {
	return &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"api.example.com"}}
}

// serve starts a server with a certificate, and returns its endpoint without a CA.
func serve(t *testing.T, certificate tls.Certificate, handler http.Handler) v1beta1.Endpoint {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are what is tested
	server.StartTLS()
	t.Cleanup(server.Close)
	return v1beta1.Endpoint{Name: "e", URL: server.URL}
}

// kubernetes answers as a kube-apiserver does.
func kubernetes(version string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/readyz":
			fmt.Fprint(w, "ok")
		case "/version":
			fmt.Fprintf(w, `{"gitVersion": %q}`, version)
		default:
			http.NotFound(w, r)
		}
	})
}

func status(code int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		fmt.Fprint(w, "do not repeat this")
	})
}

// local may dial this machine.
var local = &Prober{loopback: true}

func probe(t *testing.T, endpoint v1beta1.Endpoint) Result {
	t.Helper()
	return local.Probe(t.Context(), Target{Endpoint: endpoint, Field: "spec.endpoints[0]"})
}

// TestAnswers has a server for each kind of answer.
func TestAnswers(t *testing.T) {
	ca := newAuthority(t)
	for _, test := range []struct {
		reason  string
		handler http.Handler
		want    Result
	}{
		{"a healthy one", kubernetes("v1.37.1+k3s1"), Result{Outcome: Ready, Reason: ReasonReady, Version: "v1.37.1+k3s1", Message: "/readyz answers 200."}},
		{"one that is not ready", status(500), Result{Outcome: NotReady, Reason: ReasonNotReady, Message: "/readyz answers 500: the API server is not ready."}},
		{"one that is overloaded", status(429), Result{Outcome: NotReady, Reason: ReasonNotReady, Message: "/readyz answers 429: the API server is not ready."}},
		{"one that knows no anonymous clients", status(401), Result{Outcome: Withheld, Reason: ReasonAnonymousRefused, Message: "/readyz answers 401: the API server tells anonymous clients nothing."}},
		{"one that forbids", status(403), Result{Outcome: Withheld, Reason: ReasonAnonymousRefused, Message: "/readyz answers 403: the API server tells anonymous clients nothing."}},
		{"another server", status(404), Result{Outcome: Unexpected, Reason: ReasonUnexpectedAnswer, Message: "/readyz answers 404, as a Kubernetes API server does not: check the endpoint's URL."}},
		{"a version that is none", kubernetes("v1.2.3 <script>"), Result{Outcome: Ready, Reason: ReasonReady, Message: "/readyz answers 200."}},
		{"a version that is too long", kubernetes("v1.2.3-" + strings.Repeat("a", 64)), Result{Outcome: Ready, Reason: ReasonReady, Message: "/readyz answers 200."}},
	} {
		certificate := ca.issue(leaf())
		endpoint := serve(t, certificate, test.handler)
		endpoint.CABundle = ca.pem()
		test.want.Expires = certificate.Leaf.NotAfter
		if got := probe(t, endpoint); got != test.want {
			t.Errorf("%s:\n got %+v\nwant %+v", test.reason, got, test.want)
		}
	}
}

// TestCertificates has a server for each fault of a certificate.
func TestCertificates(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	expired, early, foreign := leaf(), leaf(), leaf()
	expired.NotAfter = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	expired.NotBefore = expired.NotAfter.Add(-time.Hour)
	early.NotBefore = time.Date(2999, 1, 2, 3, 4, 5, 0, time.UTC)
	early.NotAfter = early.NotBefore.Add(time.Hour)
	foreign.IPAddresses, foreign.DNSNames = nil, []string{"other.example.com", "not a name\x1b[31m"}
	stranger := other.issue(leaf())
	strange, past := *expired, *expired
	strange.IPAddresses, strange.DNSNames = nil, []string{"other.example.com"}
	client := leaf()
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	expiredStranger, strangeStranger := other.issue(&past), other.issue(&strange)
	withCA := other.issue(leaf())
	withCA.Certificate = append(withCA.Certificate, other.cert.Raw)
	for _, test := range []struct {
		reason      string
		certificate tls.Certificate
		bundle      []byte
		want        string
		says        []string
	}{
		{"another CA", stranger, ca.pem(), ReasonCertificateUntrusted, []string{fingerprint(stranger.Certificate[0]), fingerprint(ca.cert.Raw)}},
		{"another CA that is shown", withCA, ca.pem(), ReasonCertificateUntrusted, []string{fingerprint(other.cert.Raw), fingerprint(ca.cert.Raw)}},
		{"another CA and an expired certificate", expiredStranger, ca.pem(), ReasonCertificateUntrusted, []string{fingerprint(expiredStranger.Certificate[0]), fingerprint(ca.cert.Raw)}},
		{"another CA, expired and for another name", strangeStranger, ca.pem(), ReasonCertificateUntrusted, []string{fingerprint(strangeStranger.Certificate[0])}},
		{"a client's certificate", ca.issue(client), ca.pem(), ReasonCertificateUntrusted, []string{"extended key usage"}},
		{"no CA in the entry", stranger, nil, ReasonCertificateUntrusted, []string{fingerprint(stranger.Certificate[0]), "spec.endpoints[0].caBundle is empty"}},
		{"an expired one", ca.issue(expired), ca.pem(), ReasonCertificateExpired, []string{"expired at 2026-01-02T03:04:05Z"}},
		{"one of the future", ca.issue(early), ca.pem(), ReasonCertificateNotYetValid, []string{"not valid before 2999-01-02T03:04:05Z"}},
		{"another name", ca.issue(foreign), ca.pem(), ReasonCertificateNameMismatch, []string{"is not for 127.0.0.1, but for other.example.com.", "spec.endpoints[0].tlsServerName"}},
	} {
		endpoint := serve(t, test.certificate, kubernetes("v1.37.1"))
		endpoint.CABundle = test.bundle
		got := probe(t, endpoint)
		if got.Outcome != Failed || got.Reason != test.want {
			t.Errorf("%s: %+v, want %s", test.reason, got, test.want)
		}
		for _, text := range test.says {
			if !strings.Contains(got.Message, text) {
				t.Errorf("%s: %q is missing in %q", test.reason, text, got.Message)
			}
		}
		if strings.ContainsRune(got.Message, 0x1b) {
			t.Errorf("%s: the server's own text is in %q", test.reason, got.Message)
		}
	}
}

// TestServerName expects that the certificate is checked for the entry's name.
func TestServerName(t *testing.T) {
	ca := newAuthority(t)
	endpoint := serve(t, ca.issue(&x509.Certificate{DNSNames: []string{"api.example.com"}}), kubernetes("v1.37.1"))
	endpoint.CABundle, endpoint.TLSServerName = ca.pem(), "api.example.com"
	if got := probe(t, endpoint); got.Outcome != Ready {
		t.Errorf("%+v", got)
	}
}

// TestConnections has a peer for each way in which a connection fails.
func TestConnections(t *testing.T) {
	listen := func(serve func(net.Conn)) string {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				t.Cleanup(func() { _ = conn.Close() })
				go serve(conn)
			}
		}()
		return "https://" + listener.Addr().String()
	}
	silent := listen(func(net.Conn) {})
	hangsUp := listen(func(c net.Conn) { _ = c.Close() })
	plain := listen(func(c net.Conn) {
		_, _ = bufio.NewReader(c).ReadByte()
		fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
	})
	patient := &Prober{loopback: true, resolver: lookuptest.New().Resolver(t)}
	short := &Prober{loopback: true, timeout: time.Second}
	// It is the last one, so that none of the others gets its port.
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "https://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		reason, url string
		prober      *Prober
		want, says  string
	}{
		{"no one listens", refusing, patient, ReasonConnectionRefused, "no API server listens there"},
		{"a name that does not exist", "https://api.invalid", patient, ReasonDNSFailed, "The name api.invalid does not exist in DNS."},
		{"one that is silent", silent, short, ReasonTimedOut, "does not answer within 1s"},
		{"one that hangs up", hangsUp, patient, ReasonConnectionFailed, "breaks before there is an answer"},
		{"one without TLS", plain, patient, ReasonTLSFailed, "does not speak TLS"},
	} {
		got := test.prober.Probe(t.Context(), Target{Endpoint: v1beta1.Endpoint{URL: test.url}, Field: "spec.endpoints[0]"})
		if got.Outcome != Failed || got.Reason != test.want || !strings.Contains(got.Message, test.says) {
			t.Errorf("%s: %+v, want %s with %q", test.reason, got, test.want, test.says)
		}
	}
}

// TestNothingButTwoGETs records what a server is asked, by a client that could have
// been tempted to send or follow more.
func TestNothingButTwoGETs(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // Go passes proxies over for loopback; transport has none at all
	ca := newAuthority(t)
	var asked []string
	endpoint := serve(t, ca.issue(leaf()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if r.Header.Get("Authorization") != "" || len(r.Cookies()) > 0 || len(r.TLS.PeerCertificates) > 0 {
			t.Errorf("credentials were sent: %v", r.Header)
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "x"})
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	endpoint.CABundle = ca.pem()
	got := probe(t, endpoint)
	if got.Outcome != Unexpected || !strings.Contains(got.Message, "redirects are not followed") || got.Version != "" {
		t.Errorf("%+v", got)
	}
	if strings.Join(asked, ", ") != "GET /readyz, GET /version" {
		t.Errorf("asked: %v", asked)
	}
	if local.transport(Target{}, nil, nil, time.Now()).Proxy != nil {
		t.Error("the transport has a proxy")
	}
}

// TestEndlessAnswer expects that no more than the limit is read of an answer.
func TestEndlessAnswer(t *testing.T) {
	ca := newAuthority(t)
	written := make(chan int, 2)
	endpoint := serve(t, ca.issue(leaf()), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n, chunk := 0, make([]byte, 1<<20)
		for n < 1<<30 {
			m, err := w.Write(chunk)
			n += m
			if err != nil {
				break
			}
		}
		written <- n
	}))
	endpoint.CABundle = ca.pem()
	if got := probe(t, endpoint); got.Outcome != Ready || got.Version != "" {
		t.Errorf("%+v", got)
	}
	for range 2 {
		// What is sent beyond what is read stays in the buffers of the connection.
		if n := <-written; n >= 1<<30 {
			t.Errorf("all of %d bytes were taken", n)
		}
	}
}

// TestNotAsked has an entry for each reason why nothing is asked: the server, which
// would answer, is asked nothing.
func TestNotAsked(t *testing.T) {
	ca := newAuthority(t)
	endpoint := serve(t, ca.issue(leaf()), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the server was asked: %s %s", r.Method, r.URL)
	}))
	endpoint.CABundle = ca.pem()
	base, err := url.Parse(endpoint.URL)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*v1beta1.Endpoint)) v1beta1.Endpoint {
		changed := endpoint
		change(&changed)
		return changed
	}
	host := address.Policy{HostCIDRs: func() []netip.Prefix { return prefixes("192.0.2.0/24") }}
	for _, test := range []struct {
		reason   string
		prober   Prober
		endpoint v1beta1.Endpoint
		want     string
		says     string
	}{
		{"loopback", Prober{}, endpoint, ReasonAddressRefused, "spec.endpoints[0].url is not asked, since it leads to a loopback address."},
		{"loopback that is allowed", Prober{Policy: address.Policy{Allowed: prefixes("127.0.0.0/8")}}, endpoint, ReasonAddressRefused, "a loopback address"},
		{"loopback by a name", Prober{}, with(func(e *v1beta1.Endpoint) { e.URL = "https://localhost:" + base.Port() }), ReasonAddressRefused, "a loopback address"},
		{"loopback as a mapped address", Prober{}, with(func(e *v1beta1.Endpoint) { e.URL = "https://[::ffff:127.0.0.1]:" + base.Port() }), ReasonAddressRefused, "a loopback address"},
		{"the name of each cluster for itself", Prober{}, with(func(e *v1beta1.Endpoint) { e.URL = "https://kubernetes.default.svc" }), ReasonAddressRefused, "the API server of whichever cluster"},
		{"metadata", Prober{}, with(func(e *v1beta1.Endpoint) { e.URL = "https://169.254.169.254" }), ReasonAddressRefused, "the metadata service of a cloud"},
		{"the host's Services", Prober{Policy: host}, with(func(e *v1beta1.Endpoint) { e.URL = "https://192.0.2.1" }), ReasonAddressRefused, "health.allowedCIDRs (--health-allowed-cidrs) can permit it"},
		{"a proxy", *local, with(func(e *v1beta1.Endpoint) { e.ProxyURL = "http://proxy:3128" }), ReasonProxied, "spec.endpoints[0].proxyURL"},
		{"no URL", *local, with(func(e *v1beta1.Endpoint) { e.URL = "" }), ReasonNoEndpoint, "no endpoint"},
		{"http", *local, with(func(e *v1beta1.Endpoint) { e.URL = "http://" + base.Host }), ReasonInvalidEndpoint, "spec.endpoints[0].url"},
		{"a password", *local, with(func(e *v1beta1.Endpoint) { e.URL = "https://a:b@" + base.Host }), ReasonInvalidEndpoint, "spec.endpoints[0].url"},
		{"a query", *local, with(func(e *v1beta1.Endpoint) { e.URL += "/?do=it" }), ReasonInvalidEndpoint, "spec.endpoints[0].url"},
		{"a CA with a costly key", *local, with(func(e *v1beta1.Endpoint) { e.CABundle = append(ca.pem(), costlyCA(t)...) }), ReasonInvalidEndpoint, "spec.endpoints[0].caBundle has an RSA key of 16384 bits"},
		{"a bundle without certificates", *local, with(func(e *v1beta1.Endpoint) { e.CABundle = []byte("?") }), ReasonInvalidEndpoint, "spec.endpoints[0].caBundle"},
	} {
		got := test.prober.Probe(t.Context(), Target{Endpoint: test.endpoint, Field: "spec.endpoints[0]"})
		if got.Outcome != NotAsked || got.Reason != test.want || !strings.Contains(got.Message, test.says) {
			t.Errorf("%s: %+v, want %s with %q", test.reason, got, test.want, test.says)
		}
	}
}

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

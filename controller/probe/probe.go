package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"syscall"
	"time"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/clusterregistry/operator/apis/clusterregistry/address"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/lookup"
)

const (
	// Timeout bounds one probe: from DNS to the last byte of the second answer. It is
	// a deadline of the connections, too: Go leaves one that has answered 101 to the
	// caller, and the end of the request's context no longer closes it.
	Timeout = 10 * time.Second
	// maxAnswer bounds what is read of an answer, and of its header, in bytes.
	maxAnswer = 64 << 10
	userAgent = "clusterregistry-controller"
)

// Prober asks API servers how they are.
type Prober struct {
	// Policy says which addresses may be dialed.
	Policy address.Policy
	// Proxies are those that an administrator allows entries to name. Behind them, the
	// policy holds for addresses in URLs, not for what the proxy makes of names.
	Proxies []Proxy

	// loopback, timeout and resolver are for this package's tests, whose servers are on
	// this machine. No other package can set them.
	loopback bool
	timeout  time.Duration
	resolver *net.Resolver // nil for the system's
	// proxyRoots are the CAs of https proxies; nil for the system's.
	proxyRoots *x509.CertPool
}

// Target is the API server to ask.
type Target struct {
	// Endpoint is the entry's endpoint for this client, and Field its place in the
	// entry, such as spec.endpoints[0].
	Endpoint v1beta1.Endpoint
	Field    string
	// Own says that it is the host cluster's own endpoint, as this program has
	// registered it.
	Own bool
}

// Probe asks a target. It returns after [Timeout] at the latest.
func (p *Prober) Probe(ctx context.Context, target Target) Result {
	base, unasked := target.base()
	if unasked != nil {
		return *unasked
	}
	proxy, unasked := p.proxy(target)
	if unasked != nil {
		return *unasked
	}
	// A proxy resolves names, and may get other addresses than this program would: the
	// exception for the host cluster's own entry is for what is dialed from here.
	var refusal *address.Refusal
	if errors.As(p.check(base.Hostname(), target.Own && proxy == nil), &refusal) {
		return refused(target, refusal)
	}
	timeout := Timeout
	if p.timeout > 0 {
		timeout = p.timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	roots, err := authorities(target.Endpoint.CABundle)
	if err != nil {
		return Result{Outcome: NotAsked, Reason: ReasonInvalidEndpoint, Message: fmt.Sprintf("%s.caBundle %v.", target.Field, err)}
	}
	transport := p.transport(target, proxy, roots, time.Now().Add(timeout))
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

	names := &lookup.Lookup{}
	ready, err := get(names.Trace(ctx), client, base.JoinPath("readyz"))
	silent := !lookup.Failed(err)
	err = names.Explain(err, base.Hostname())
	if proxy != nil && silent && lookup.Failed(err) {
		err = &net.OpError{Op: "proxyconnect", Net: "tcp", Err: err} // as net/http has it
	}
	if err != nil && proxy != nil {
		if result := proxyFailed(*proxy, base, err); result != nil {
			return *result
		}
	}
	if err != nil {
		return diagnose(target, base, roots, err, timeout)
	}
	result := judge(ready.status)
	result.Expires = ready.expires
	// A server that withholds the one may tell the other.
	if version, err := get(ctx, client, base.JoinPath("version")); err == nil && version.status == http.StatusOK {
		result.Version = validVersion(version.body)
	}
	return result
}

// base returns the URL to ask below, or why nothing is asked.
func (t Target) base() (*url.URL, *Result) {
	not := func(reason, format string, args ...any) (*url.URL, *Result) {
		return nil, &Result{Outcome: NotAsked, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	if t.Endpoint.URL == "" {
		return not(ReasonNoEndpoint, "The cluster has no endpoint with a URL for the client address of the health controller.")
	}
	base, err := url.Parse(t.Endpoint.URL)
	if err != nil || base.Scheme != "https" || base.Hostname() == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return not(ReasonInvalidEndpoint, "%s.url is not an https URL of a host: nothing else is asked.", t.Field)
	}
	return base, nil
}

// transport returns a transport for one probe, whose connections end at the deadline.
// Without a proxy they lead to the target.
func (p *Prober) transport(target Target, proxy *Proxy, roots *x509.CertPool, deadline time.Time) *http.Transport {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: target.Endpoint.TLSServerName, RootCAs: roots}
	dialer := &net.Dialer{Resolver: p.resolver, Control: func(_, address string, _ syscall.RawConn) error {
		if proxy != nil {
			return p.admitProxy(*proxy, address)
		}
		return p.admit(address, target.Own)
	}}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}
	transport := &http.Transport{
		Proxy:                  nil, // not the one of the environment either
		DialContext:            dial,
		TLSClientConfig:        config,
		DisableCompression:     true, // an answer is as large as what is read of it
		MaxResponseHeaderBytes: maxAnswer,
	}
	if proxy != nil {
		p.through(transport, *proxy, dial)
	}
	return transport
}

// admit decides on the address that a connection is about to be opened to, after DNS.
func (p *Prober) admit(dialed string, own bool) error {
	at, err := netip.ParseAddrPort(dialed)
	if err != nil {
		return &address.Refusal{What: "something other than an IP address"}
	}
	return p.check(at.Addr().String(), own)
}

// check decides on a host before it is looked up, or on an address.
func (p *Prober) check(host string, own bool) error {
	if p.loopback {
		if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
			return nil
		}
	}
	return p.Policy.Check(host, own)
}

// answer is what is kept of an answer.
type answer struct {
	status  int
	body    []byte
	expires time.Time
}

func get(ctx context.Context, client *http.Client, at *url.URL) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("User-Agent", userAgent)
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	out := answer{status: response.StatusCode}
	// What follows a 101 is no answer, but a connection without an end. Other answers
	// are read whole, so that the next request takes the same connection.
	if response.StatusCode != http.StatusSwitchingProtocols {
		if out.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer)); err != nil {
			return answer{}, err
		}
	}
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		out.expires = response.TLS.PeerCertificates[0].NotAfter
	}
	return out, nil
}

// judge returns what the status of the answer to /readyz says.
func judge(status int) Result {
	switch {
	case status == http.StatusOK:
		return Result{Outcome: Ready, Reason: ReasonReady, Message: "/readyz answers 200."}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return Result{Outcome: Withheld, Reason: ReasonAnonymousRefused, Message: fmt.Sprintf("/readyz answers %d: the API server tells anonymous clients nothing.", status)}
	case status >= 500 && status < 600 || status == http.StatusTooManyRequests:
		return Result{Outcome: NotReady, Reason: ReasonNotReady, Message: fmt.Sprintf("/readyz answers %d: the API server is not ready.", status)}
	case status >= 300 && status < 400:
		return Result{Outcome: Unexpected, Reason: ReasonUnexpectedAnswer, Message: fmt.Sprintf("/readyz answers %d: redirects are not followed; the endpoint's URL must be that of the API server itself.", status)}
	}
	return Result{Outcome: Unexpected, Reason: ReasonUnexpectedAnswer, Message: fmt.Sprintf("/readyz answers %d, as a Kubernetes API server does not: check the endpoint's URL.", status)}
}

// versionForm is what versions of Kubernetes look like, those of distributions included.
var versionForm = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*$`)

// validVersion returns the version in an answer to /version, or "" when it has none.
func validVersion(body []byte) string {
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &info); err != nil || len(info.GitVersion) > 64 || !versionForm.MatchString(info.GitVersion) {
		return ""
	}
	if _, err := utilversion.ParseSemantic(info.GitVersion); err != nil {
		return ""
	}
	return info.GitVersion
}

package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/clusterregistry/operator/apis/clusterregistry/address"
)

// Proxy is an HTTP proxy that an administrator trusts to connect to whatever the
// entries that name it say.
type Proxy struct {
	scheme, host, port string
}

// ParseProxy returns the proxy of a URL such as http://proxy.example.com:3128.
func ParseProxy(text string) (Proxy, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return Proxy{}, errors.New("it is not the URL of an HTTP proxy, such as http://proxy.example.com:3128, without a user, path or query")
	}
	p := Proxy{scheme: u.Scheme, host: strings.ToLower(u.Hostname()), port: u.Port()}
	if p.port == "" {
		p.port = map[string]string{"http": "80", "https": "443"}[p.scheme]
	}
	return p, nil
}

// URL returns the proxy's URL, always with its port.
func (p Proxy) URL() *url.URL {
	return &url.URL{Scheme: p.scheme, Host: net.JoinHostPort(p.host, p.port)}
}

func (p Proxy) String() string { return p.URL().String() }

// literal reports whether the proxy is named by this very address.
func (p Proxy) literal(ip netip.Addr) bool {
	named, err := netip.ParseAddr(p.host)
	return err == nil && named.Unmap() == ip.Unmap()
}

// proxy returns the allowed proxy that leads to a target; nil for none. It returns why
// nothing is asked when the entry names another one.
func (p *Prober) proxy(target Target) (*Proxy, *Result) {
	if target.Endpoint.ProxyURL == "" {
		return nil, nil
	}
	named, err := ParseProxy(target.Endpoint.ProxyURL)
	if err != nil || !slices.Contains(p.Proxies, named) {
		return nil, &Result{Outcome: NotAsked, Reason: ReasonProxied, Message: fmt.Sprintf("%s.proxyURL names a proxy that the health controller may not use. health.allowedProxies (--health-allowed-proxies) can permit it, if it is an HTTP proxy.", target.Field)}
	}
	return &named, nil
}

// through has a transport connect by way of a proxy, with CONNECT and nothing else:
// https targets are never asked of the proxy itself.
func (p *Prober) through(transport *http.Transport, proxy Proxy, dial func(context.Context, string, string) (net.Conn, error)) {
	transport.Proxy = http.ProxyURL(proxy.URL())
	transport.ProxyConnectHeader = http.Header{"User-Agent": {userAgent}}
	transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return &unconnected{status: response.StatusCode}
		}
		return nil
	}
	// The entry's CA and server name are the target's: the proxy has those of this system.
	transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: proxy.host, RootCAs: p.proxyRoots})
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, &proxyTLSError{errors.Join(err, conn.Close())}
		}
		return secure, nil
	}
}

// admitProxy decides on the address of an allowed proxy that is about to be dialed: it
// may be in the host cluster, since an administrator named it, and elsewhere than
// anything may be only under that very address.
func (p *Prober) admitProxy(proxy Proxy, dialed string) error {
	at, err := netip.ParseAddrPort(dialed)
	if err == nil && proxy.literal(at.Addr()) {
		return nil
	}
	return p.admit(dialed, true)
}

// unconnected is the error for a proxy that does not connect to the target. The text of
// its answer is not kept.
type unconnected struct{ status int }

func (u *unconnected) Error() string { return fmt.Sprintf("the proxy answers %d", u.status) }

// proxyTLSError is the error for a proxy that shows no certificate of a trusted CA, or
// does not speak TLS.
type proxyTLSError struct{ error }

func (p *proxyTLSError) Unwrap() error { return p.error }

// proxyFailed says what is wrong with the way through a proxy; nil when the proxy is not
// to blame. Messages have no text of the proxy.
func proxyFailed(proxy Proxy, base *url.URL, err error) *Result {
	var (
		refusal *address.Refusal
		not     *unconnected
		secure  *proxyTLSError
		op      *net.OpError
	)
	failed := func(format string, args ...any) *Result {
		return &Result{Outcome: Failed, Reason: ReasonProxyFailed, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case errors.As(err, &refusal):
		return &Result{Outcome: NotAsked, Reason: ReasonAddressRefused, Message: fmt.Sprintf("The proxy %s is not asked, since its name leads to %s. health.allowedProxies (--health-allowed-proxies) can name it by that address.", proxy, refusal.What)}
	case errors.As(err, &not):
		return failed("The proxy %s does not connect to %s: it answers %d.", proxy, base.Host, not.status)
	case errors.As(err, &secure):
		return failed("The proxy %s does not speak TLS, or shows no certificate of a CA that the system trusts.", proxy)
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return failed("There is no connection to the proxy %s.", proxy)
	}
	return nil
}

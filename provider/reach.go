package provider

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"

	"k8s.io/client-go/rest"
)

// check returns why no entry may lead to a host.
func (o *Options) check(host string) error {
	if ip, err := netip.ParseAddr(host); o.loopback && err == nil && ip.IsLoopback() {
		return nil
	}
	return o.Addresses.Check(host, false)
}

// limit has a configuration connect only where entries may lead, and follow no redirects:
// client-go adds the credentials to each request, also to one that a server has redirected to
// another, without TLS. It is for a configuration that has its credentials.
func (t *target) limit(config *rest.Config, o *Options) {
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return direct{inner} })
	if o.Dial != nil {
		return // the program decides
	}
	if t.proxy == nil {
		// The proxy of the program's own environment is not the entry's choice.
		if own, err := http.ProxyFromEnvironment(&http.Request{URL: t.url}); err == nil && own != nil {
			config.Dial = new(net.Dialer).DialContext
			return
		}
	}
	dialer := &net.Dialer{Control: func(_, dialed string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(dialed)
		if err != nil {
			return err
		}
		return o.check(host) // after DNS: a name that changes its address gains nothing
	}}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, address)
	}
}

// direct refuses redirects.
type direct struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.RoundTripper.RoundTrip(request)
	if err != nil || response.StatusCode < 300 || response.StatusCode > 399 || response.StatusCode == http.StatusNotModified {
		return response, err
	}
	_ = response.Body.Close()
	return nil, fmt.Errorf("the server at %s answers %d: redirects are not followed, since credentials would go where they lead; the endpoint's URL must be that of the API server itself", request.URL.Host, response.StatusCode)
}

// WrappedRoundTripper lets client-go find what is inside.
func (d direct) WrappedRoundTripper() http.RoundTripper { return d.RoundTripper }

// parse returns the URL of an endpoint or its proxy, if it has one of the schemes and its
// host may be led to.
func (o *Options) parse(text, what string, schemes ...string) (*url.URL, error) {
	u, err := url.Parse(text)
	valid := false
	for _, scheme := range schemes {
		valid = valid || err == nil && u.Scheme == scheme
	}
	if !valid || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("%s is not valid", what)
	}
	if err := o.check(u.Hostname()); err != nil {
		return nil, fmt.Errorf("%s is refused: %w", what, err)
	}
	return u, nil
}

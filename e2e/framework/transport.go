package framework

import (
	"crypto/tls"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Transport returns how clients reach the server that config leads to, and its URL: with
// plain HTTP/1.1, over so many connections that may be idle. Nothing is tried again.
func Transport(config *rest.Config, idle int) (transport http.RoundTripper, server string, err error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, "", err
	}
	if tlsConfig != nil {
		tlsConfig.NextProtos = nil
	}
	transport, err = rest.HTTPWrappersForConfig(config, &http.Transport{TLSClientConfig: tlsConfig, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		MaxIdleConnsPerHost: idle, ResponseHeaderTimeout: time.Minute,
		IdleConnTimeout: time.Minute}) // servers close theirs after 90 s, and a request that is sent at that moment fails
	if err != nil {
		return nil, "", err
	}
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, "", err
	}
	return transport, strings.TrimSuffix(url.String(), "/"), nil
}

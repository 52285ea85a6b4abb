package hostentry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// patience bounds the look at an endpoint that is about to be published.
const patience = 10 * time.Second

// handshake returns why the server at a URL has no certificate for the host of an
// endpoint that the endpoint's CA has signed: no one is sent there. It sends no
// credentials, and asks nothing.
func handshake(ctx context.Context, endpoint *v1beta1.Endpoint, at string) error {
	base, err := url.Parse(endpoint.URL)
	if err != nil || base.Scheme != "https" || base.Hostname() == "" {
		return fmt.Errorf("it is not an https URL of a host")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: base.Hostname()}
	if len(endpoint.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(endpoint.CABundle) {
			return fmt.Errorf("its CA bundle has no certificate that can be read")
		}
	}
	if base, err = url.Parse(at); err != nil || base.Hostname() == "" {
		return fmt.Errorf("%q is not a URL of a host", at)
	}
	port := base.Port()
	if port == "" {
		port = "443"
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", net.JoinHostPort(base.Hostname(), port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// unreached reports whether a handshake failed before anyone answered.
func unreached(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, context.DeadlineExceeded)
}

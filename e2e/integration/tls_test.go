package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/e2e/framework"
)

// livez asks for /livez on a connection.
func livez(conn *tls.Conn, reader *bufio.Reader) error {
	if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: registry\r\n\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}

// testServingCertificate replaces the serving certificate of a server that
// runs, several times, as cert-manager and kubelet do it.
func testServingCertificate(t *testing.T, registry *framework.Registry) {
	// The name tells the certificates apart. The server's identity is not the point.
	connect := func(ctx context.Context) (*tls.Conn, string, error) {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", registry.Port)) //nolint:gosec // see above
		if err != nil {
			return nil, "", err
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.(*tls.Conn), conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName, nil
	}
	old, name, err := connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if name != "registry" {
		t.Fatalf("the first certificate is %s", name)
	}
	reader := bufio.NewReader(old)
	for i := range 3 {
		want := fmt.Sprintf("renewed-%d", i+1)
		registry.Serving.Replace(registry.CA.Issue(want, nil, "registry.default.svc", "localhost", "127.0.0.1"))
		framework.Eventually(t, "new connections to get "+want, func(ctx context.Context) error {
			_, got, err := connect(ctx)
			if err == nil && got != want {
				err = fmt.Errorf("they get %s", got)
			}
			return err
		})
		if err := livez(old, reader); err != nil {
			t.Errorf("the connection from before: %v", err)
		}
	}
}

// testTLSVersions connects with each version of TLS.
func testTLSVersions(t *testing.T, registry *framework.Registry) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(registry.CA.PEM)
	for version, works := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", registry.Port), &tls.Config{RootCAs: roots, MinVersion: version, MaxVersion: version}) //nolint:gosec,noctx // old versions are the point
		switch {
		case err == nil:
			_ = conn.Close()
			if !works {
				t.Errorf("%s is accepted", tls.VersionName(version))
			}
		case works || !strings.Contains(err.Error(), "protocol version not supported"):
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}

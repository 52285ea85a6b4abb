// Package health asks servers over HTTPS how they are. It trusts exactly the CAs
// that it is given, and every question has its own time limit.
package health

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
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/version"
)

// timeout bounds one question: a server that needs longer does not serve.
const timeout = 5 * time.Second

// Server is a Kubernetes-style API server.
type Server struct {
	// Address is where it listens, host and port.
	Address string
	// Name is what its certificate must be valid for.
	Name string
	// CAs are the certificates to trust, in PEM.
	CAs []byte
	// Client is the certificate to show, nil for none.
	Client *tls.Certificate
}

// Ask returns the version that a server says it is which answers /readyz with "ok", and else what
// it says, check by check. It asks over one connection, which no later question uses: each begins
// with the certificate that the server has by then.
func (s Server) Ask(ctx context.Context) (version string, err error) {
	c, err := s.connect()
	if err != nil {
		return "", err
	}
	defer c.http.CloseIdleConnections()
	if err := c.ready(ctx); err != nil {
		return "", err
	}
	return c.version(ctx)
}

// connection is a way to a server.
type connection struct {
	address string
	http    *http.Client
}

// connect returns a way to the server, which opens a connection when something is asked.
func (s Server) connect() (*connection, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.CAs) {
		return nil, errors.New("there is no CA certificate to verify the servers with")
	}
	config := &tls.Config{RootCAs: roots, ServerName: s.Name, MinVersion: tls.VersionTLS12}
	if s.Client != nil {
		config.Certificates = []tls.Certificate{*s.Client}
	}
	return &connection{s.Address, &http.Client{Transport: &http.Transport{TLSClientConfig: config, DialContext: (&net.Dialer{Timeout: timeout}).DialContext}}}, nil
}

func (c *connection) ready(ctx context.Context) error {
	_, err := c.get(ctx, "/readyz?verbose")
	return err
}

func (c *connection) version(ctx context.Context) (string, error) {
	answer, err := c.get(ctx, "/version")
	if err != nil {
		return "", err
	}
	var info version.Info
	if err := json.Unmarshal(answer, &info); err != nil {
		return "", fmt.Errorf("https://%s/version does not answer as a Kubernetes API server: %w", c.address, err)
	}
	return info.GitVersion, nil
}

func (c *connection) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	url := "https://" + c.address + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s: %s", url, response.Status, failed(string(answer)))
	}
	return answer, nil
}

// failed keeps the failed checks of a verbose answer, or else the answer.
func failed(answer string) string {
	var lines []string
	for _, line := range strings.Split(answer, "\n") {
		if strings.HasPrefix(line, "[-]") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return strings.TrimSpace(answer)
	}
	return strings.Join(lines, ", ")
}

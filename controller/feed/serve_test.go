package feed

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/internal/contract"
)

// served runs a server at an address of this machine, which it returns, with the certificate in two
// files.
func (b *bench) served(cert, key string) string {
	b.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(b.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan struct{})
	go func() {
		b.Serve(ctx, address, cert, key)
		close(ended)
	}()
	b.t.Cleanup(func() {
		cancel()
		<-ended
	})
	return address
}

// get asks a server for a path, and returns the status; 0 where it does not answer who trusts a
// certificate.
func get(t *testing.T, address string, trusted []byte, change func(*http.Request)) (status int, body string) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "hub-controller.registries.svc"}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/v1/clusters.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer token")
	if change != nil {
		change(request)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.ProtoMajor != 1 {
		t.Errorf("%v, %s", err, response.Proto)
	}
	return response.StatusCode, string(content)
}

// TestServe asks a server over TLS, whose certificate is replaced by one of another CA, and expects it to
// log nothing of requests.
func TestServe(t *testing.T) {
	var logged bytes.Buffer
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := errors.Join(flags.Set("logtostderr", "false"), flags.Set("v", "10")); err != nil {
		t.Fatal(err)
	}
	klog.SetOutput(&logged)
	directory := t.TempDir()
	cert, key := filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")
	replace := func() (trusted []byte) {
		content, private := certificate("hub-controller.registries.svc")
		for path, content := range map[string][]byte{key: private, cert: content} {
			if err := os.WriteFile(path+"~", content, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+"~", path); err != nil {
				t.Fatal(err)
			}
		}
		return content
	}
	before := replace()
	b := newBench(t)
	b.put(member("east"))
	address := b.served(cert, key)
	answers := func(trusted []byte) func() error {
		return func() error {
			if status, body := get(t, address, trusted, nil); status != http.StatusOK || !strings.Contains(body, `"east"`) {
				return fmt.Errorf("%d, %s", status, body)
			}
			return nil
		}
	}
	eventually(t, answers(before))
	for reason, test := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"no token":                    {func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		"another token":               {func(r *http.Request) { r.Header.Set("Authorization", "Bearer tokenish") }, http.StatusUnauthorized},
		"a header that is big":        {func(r *http.Request) { r.Header.Set("X", strings.Repeat("x", 1<<16)) }, http.StatusRequestHeaderFieldsTooLarge},
		"a filter that can't be read": {func(r *http.Request) { r.URL.RawQuery = "labelSelector=a;token" }, http.StatusBadRequest},
	} {
		if status, body := get(t, address, before, test.change); status != test.want {
			t.Errorf("%s: %d, %s", reason, status, body)
		}
	}
	after := replace()
	b.time.Step(look)
	eventually(t, answers(after))
	if status, _ := get(t, address, before, nil); status != 0 {
		t.Errorf("who trusts the former CA alone gets %d", status)
	}
	klog.Flush()
	if strings.Contains(logged.String(), "token") {
		t.Errorf("it has logged %s", logged.String())
	}
}

func eventually(t *testing.T, holds func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = holds(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// TestCertificateLater expects a certificate that comes, or can be read, later to be a reason to say so
// and to go on.
func TestCertificateLater(t *testing.T) {
	directory := t.TempDir()
	cert, key := filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")
	said := make(chan string, 1)
	b := newBench(t, func(c *Config) {
		c.Say = func(state contract.FunctionState, message string) {
			select {
			case said <- string(state) + ": " + message:
			default:
			}
		}
	})
	b.put(member("east"))
	address := b.served(cert, key)
	if got := <-said; !strings.Contains(got, "Failing: Requests are not answered: ") || !strings.Contains(got, "tls.crt") {
		t.Error(got)
	}
	content, private := certificate("hub-controller.registries.svc")
	if err := errors.Join(os.WriteFile(cert, content, 0o600), os.WriteFile(key, private, 0o600)); err != nil {
		t.Fatal(err)
	}
	answers := func() error {
		b.time.Step(look)
		if status, body := get(t, address, content, nil); status != http.StatusOK {
			return fmt.Errorf("%d, %s", status, body)
		}
		return nil
	}
	eventually(t, answers)
	if err := os.WriteFile(key, []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, answers) // by the last one
}

// written returns the files of a certificate, and what is in the first of them.
func written(t *testing.T) (cert, key string, content []byte) {
	t.Helper()
	directory := t.TempDir()
	cert, key = filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")
	content, private := certificate("hub-controller.registries.svc")
	if err := errors.Join(os.WriteFile(cert, content, 0o600), os.WriteFile(key, private, 0o600)); err != nil {
		t.Fatal(err)
	}
	return cert, key, content
}

// TestAddressTaken expects an address that can't be listened on to be tried again.
func TestAddressTaken(t *testing.T) {
	cert, key, content := written(t)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.put(member("east"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		b.Serve(ctx, taken.Addr().String(), cert, key)
		close(ended)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	eventually(t, func() error {
		if !b.time.HasWaiters() {
			return errors.New("it does not wait")
		}
		return taken.Close()
	})
	eventually(t, func() error {
		b.time.Step(look)
		if status, body := get(t, taken.Addr().String(), content, nil); status != http.StatusOK {
			return fmt.Errorf("%d, %s", status, body)
		}
		return nil
	})
}

// TestConnections expects the connections of one address not to keep another one out, and who is refused to
// hold none.
func TestConnections(t *testing.T) {
	cert, key, content := written(t)
	b := newBench(t)
	b.put(member("east"))
	address := b.served(cert, key)
	dial := func(from string) net.Conn {
		t.Helper()
		var connection net.Conn
		eventually(t, func() (err error) {
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
			connection, err = dialer.DialContext(t.Context(), "tcp", address)
			return err
		})
		t.Cleanup(func() { _ = connection.Close() })
		return connection
	}
	for range 2 * connections {
		dial("127.0.0.2")
	}
	if status, body := get(t, address, content, nil); status != http.StatusOK {
		t.Errorf("from another address: %d, %s", status, body)
	}
	closed := func(r *http.Request) { r.Header.Del("Authorization") }
	if got := b.send(http.MethodGet, "/v1/flux", nil); got.Header().Get("Connection") != "close" {
		t.Errorf("without a token: %v", got.Header())
	}
	for range 2 * connectionsOf { // each leaves its place
		if status, body := get(t, address, content, closed); status != http.StatusUnauthorized {
			t.Fatalf("%d, %s", status, body)
		}
	}
}

package health

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// certified is the name in httptest's certificate.
const certified = "example.com"

// answering returns a server that answers all questions in one way.
func answering(t *testing.T, status int, body string) Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return Server{Address: server.Listener.Addr().String(), Name: certified, CAs: ca}
}

// ready asks whether a server is ready.
func (s Server) ready(ctx context.Context) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer c.http.CloseIdleConnections()
	return c.ready(ctx)
}

// version asks for the version of a server.
func (s Server) version(ctx context.Context) (string, error) {
	c, err := s.connect()
	if err != nil {
		return "", err
	}
	defer c.http.CloseIdleConnections()
	return c.version(ctx)
}

func TestReady(t *testing.T) {
	for _, test := range []struct {
		reason string
		status int
		body   string
		says   string
	}{
		{"all is well", http.StatusOK, "[+]ping ok\nreadyz check passed", ""},
		{"what failed is told, and nothing else", http.StatusInternalServerError, "[+]ping ok\n[-]etcd failed: reason withheld\n[-]informer-sync failed\nreadyz check failed", "500 Internal Server Error: [-]etcd failed: reason withheld, [-]informer-sync failed"},
		{"a stranger is refused", http.StatusForbidden, "no\n", "403 Forbidden: no"},
		{"a server that tells nothing", http.StatusServiceUnavailable, "", "503 Service Unavailable"},
	} {
		err := answering(t, test.status, test.body).ready(t.Context())
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if err != nil && strings.Contains(err.Error(), "[+]") {
			t.Errorf("%s: it tells what did not fail: %v", test.reason, err)
		}
	}
}

func TestVersion(t *testing.T) {
	if version, err := answering(t, http.StatusOK, `{"gitVersion": "v0.1.0"}`).version(t.Context()); version != "v0.1.0" || err != nil {
		t.Errorf("%q, %v", version, err)
	}
	if _, err := answering(t, http.StatusOK, "<html>").version(t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer as a Kubernetes API server") {
		t.Errorf("something else: %v", err)
	}
	if _, err := answering(t, http.StatusUnauthorized, "{}").version(t.Context()); err == nil {
		t.Error("a refusal is taken for a version")
	}
}

// TestTrust expects that nothing is asked of a server that is not the one.
func TestTrust(t *testing.T) {
	good := answering(t, http.StatusOK, "ok")
	if err := good.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for reason, test := range map[string]struct {
		server Server
		says   string
	}{
		"another name":          {Server{Address: good.Address, Name: "fleet-server.team.svc", CAs: good.CAs}, "not fleet-server.team.svc"},
		"no CA":                 {Server{Address: good.Address, Name: certified, CAs: nil}, "no CA certificate to verify"},
		"a CA that is no PEM":   {Server{Address: good.Address, Name: certified, CAs: []byte("?")}, "no CA certificate to verify"},
		"nobody listens":        {Server{Address: "127.0.0.1:1", Name: certified, CAs: good.CAs}, "connection refused"},
		"an address of nothing": {Server{Address: "", Name: certified, CAs: good.CAs}, "no Host"},
	} {
		if err := test.server.ready(t.Context()); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestEndless gives up when it is told to.
func TestEndless(t *testing.T) {
	asked := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := (Server{Address: server.Listener.Addr().String(), Name: certified, CAs: ca}).ready(ctx); err == nil {
		t.Error("it is ready without an answer")
	}
}

// TestAsk asks a server for all over one connection, that is closed then, and does not ask one
// for its version that is not ready.
func TestAsk(t *testing.T) {
	for _, ready := range []bool{true, false} {
		opened, closed := atomic.Int32{}, make(chan struct{}, 10)
		var asked []string
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path)
			switch {
			case r.URL.Path == "/version":
				fmt.Fprint(w, `{"gitVersion": "v0.1.0"}`)
			case ready:
				fmt.Fprint(w, "ok")
			default:
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				opened.Add(1)
			case http.StateClosed:
				closed <- struct{}{}
			}
		}
		server.StartTLS()
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		version, err := Server{Address: server.Listener.Addr().String(), Name: certified, CAs: ca}.Ask(t.Context())
		<-closed
		server.Close()
		want := map[bool]string{true: "/readyz /version", false: "/readyz"}[ready]
		if (err == nil) != ready || (version == "v0.1.0") != ready || opened.Load() != 1 || strings.Join(asked, " ") != want {
			t.Errorf("ready: %t: %q, %v after %v over %d connections", ready, version, err, asked, opened.Load())
		}
	}
}

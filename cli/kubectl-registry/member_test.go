package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// member is the cluster that joins in the sessions. It answers at its own address, which is
// on this computer, and through a proxy at every name below example.com.
var member *httptest.Server

// TestMain has the proxy in the environment before anything is sent: net/http reads that once.
func TestMain(m *testing.M) {
	member = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = fmt.Fprint(w, `{"gitVersion":"v1.37.1"}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"5f0e8c1a-0c6f-4b2e-9a53-2f1f3f6f7a10"}}`)
	}))
	proxy := httptest.NewServer(http.HandlerFunc(tunnel))
	for _, name := range []string{"HTTPS_PROXY", "https_proxy"} {
		_ = os.Setenv(name, proxy.URL)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		_ = os.Unsetenv(name)
	}
	code := m.Run()
	proxy.Close()
	member.Close()
	os.Exit(code)
}

// tunnel leads every CONNECT to the member.
func tunnel(w http.ResponseWriter, r *http.Request) {
	out, err := new(net.Dialer).DialContext(r.Context(), "tcp", member.Listener.Addr().String())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	in, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		_ = out.Close()
		return
	}
	_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
	go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
}

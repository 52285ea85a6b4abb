package framework

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// StartMember starts a server that says under every path that it is ready, at an address of
// this machine that is not loopback. It returns its URL, and the CA of its certificate.
func StartMember(t *testing.T) (url string, ca []byte) {
	t.Helper()
	return StartMemberOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
}

// StartMemberOf starts such a server that answers in another way.
func StartMemberOf(t *testing.T, answer http.Handler) (url string, ca []byte) {
	t.Helper()
	host, authority := outside(t), NewAuthority(t, "member-ca")
	serving := authority.Issue("member", nil, host)
	pair, err := tls.LoadX509KeyPair(serving.Cert, serving.Key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(answer)
	_ = server.Listener.Close()
	if server.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0")); err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, authority.PEM
}

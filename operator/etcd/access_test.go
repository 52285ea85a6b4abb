package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/clusterregistry/operator/internal/lookup/lookuptest"
)

func TestExplain(t *testing.T) {
	for reason, test := range map[string]struct {
		err  error
		want string
	}{
		"a name without an address": {&net.DNSError{Err: "no such host", Name: "etcd-0.etcd", IsNotFound: true}, "has a name that DNS does not resolve"},
		"a name server that is ill": {&net.DNSError{Err: "server misbehaving", Name: "etcd-0.etcd"}, "has a name that DNS does not resolve now"},
		"another CA":                {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "presents a certificate that the CA given for etcd did not sign"},
		"another name":              {&tls.CertificateVerificationError{Err: x509.HostnameError{}}, "presents a certificate that is not valid for its name"},
		"too late":                  {&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, "presents a certificate that is not valid"},
		"no client certificate":     {&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, "refuses the client certificate"},
		"no common version of TLS":  {&net.OpError{Op: "remote error", Err: errors.New("tls: protocol version not supported")}, "fails"},
		"a member that ends":        {io.EOF, "closed the connection"},
		"no majority":               {readError{timeoutError(time.Second), false}, "has no leader"},
		"a leader that lags":        {readError{timeoutError(time.Second), true}, "answers but does not complete a linearizable read"},
		"what etcd says":            {errors.New("etcdserver: not leader"), "fails"},
	} {
		if got := explain(fmt.Errorf("wrapped: %w", test.err)); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %q, want %q", reason, got, test.want)
		}
	}
}

// TestObserveStrangers asks what is no etcd.
func TestObserveStrangers(t *testing.T) {
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	defer web.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())

	endpoints := map[string]string{
		"silent": "https://" + silent.Addr().String(),
		"web":    web.URL,
		"gone":   strings.Replace(gone.URL, "http", "https", 1),
		"plain":  "http://127.0.0.1:2379",
		"none":   "",
	}
	s := Access{Endpoints: endpoints, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}.Observe(t.Context())
	for name, want := range map[string]string{
		"silent": "does not answer: timed out, no answer within 3s",
		"web":    "no application protocol",
		"gone":   "connection refused",
		"plain":  "it is not a URL such as https://",
		"none":   "it is not a URL such as https://",
	} {
		m, serves := s.member(name)
		if serves || !strings.HasPrefix(fmt.Sprint(m.Err), fmt.Sprintf("member %s (%s) ", name, endpoints[name])) || !strings.Contains(fmt.Sprint(m.Err), want) {
			t.Errorf("%s: %v, want %q", name, m.Err, want)
		}
	}
	if s.ListErr == nil || s.Serves() == nil {
		t.Errorf("the list is known (%v) and it serves (%v)", s.ListErr, s.Serves())
	}
}

// TestObserveNames has DNS fail, be silent for longer than a member is asked, and answer: that,
// and not the member, is what is to be looked after.
func TestObserveNames(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	_, port, err := net.SplitHostPort(gone.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	names := lookuptest.New("127.0.0.1")
	names.Everywhere(t)
	for name, test := range map[string]struct {
		does lookuptest.Does
		want string
	}{
		"failing": {lookuptest.Fail, "has a name that DNS does not resolve now: dial tcp: lookup failing.etcd."},
		"silent":  {lookuptest.Ignore, "has a name that DNS does not resolve now: lookup silent.etcd.: timed out, no answer within 1s"},
		"known":   {lookuptest.Answer, "refuses connections, so no etcd listens there"},
	} {
		names.Turn(test.does)
		access := Access{Endpoints: map[string]string{name: "https://" + name + ".etcd.:" + port}, TLS: &tls.Config{MinVersion: tls.VersionTLS12}, Timeout: time.Second}
		if m, serves := access.Observe(t.Context()).member(name); serves || !strings.Contains(fmt.Sprint(m.Err), test.want) {
			t.Errorf("%v, want %q", m.Err, test.want)
		}
	}
}

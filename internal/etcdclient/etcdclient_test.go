package etcdclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// TestURL refuses what a client of one member can't be made from.
func TestURL(t *testing.T) {
	for url, refused := range map[string]bool{
		"https://etcd-0.etcd:2379": false,
		"https://[::1]:2379":       false,
		"https://etcd-0.etcd":      true,
		"http://etcd-0.etcd:2379":  true,
		"etcd-0.etcd:2379":         true,
		"":                         true,
	} {
		if _, err := (Member{URL: url}).Config(nil); (err != nil) != refused {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// kv is an etcd that answers reads, with nothing.
type kv struct {
	etcdserverpb.UnimplementedKVServer
}

func (kv) Range(context.Context, *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
}

// start serves kv until the test ends, with a certificate for example.com that the
// returned CA has signed.
func start(t *testing.T, config *tls.Config) (address string, ca *x509.CertPool) {
	t.Helper()
	certificate := httptest.NewTLSServer(nil)
	certificate.Close()
	config.Certificates, config.MinVersion = certificate.TLS.Certificates, tls.VersionTLS12
	ca = x509.NewCertPool()
	ca.AddCert(certificate.Certificate())
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	etcdserverpb.RegisterKVServer(server, kv{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String(), ca
}

// TestConfig reads from a member at its address, and expects to be told why where that
// is impossible.
func TestConfig(t *testing.T) {
	plain, ca := start(t, &tls.Config{})
	strict, strictCA := start(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert})
	for reason, test := range map[string]struct {
		member Member
		says   string
	}{
		"a member elsewhere than DNS says": {Member{URL: "https://example.com:2379", Address: plain, TLS: &tls.Config{RootCAs: ca}}, ""},
		"a member at its URL":              {Member{URL: "https://" + plain, TLS: &tls.Config{RootCAs: ca}}, ""},
		"another name":                     {Member{URL: "https://etcd-0.etcd:2379", Address: plain, TLS: &tls.Config{RootCAs: ca}}, "not etcd-0.etcd"},
		"another CA":                       {Member{URL: "https://" + plain, TLS: &tls.Config{RootCAs: x509.NewCertPool()}}, "unknown authority"},
		"no TLS":                           {Member{URL: "https://" + plain}, "unknown authority"},
		"no client certificate":            {Member{URL: "https://" + strict, TLS: &tls.Config{RootCAs: strictCA}}, "certificate required"},
	} {
		ctx, fail := context.WithCancelCause(t.Context())
		config, err := test.member.Config(fail)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		client, err := clientv3.New(config)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		timeout, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err = client.Get(timeout, "any")
		cause := context.Cause(ctx)
		if (err != nil) != (test.says != "") || err != nil && (cause == nil || !strings.Contains(cause.Error(), test.says)) {
			t.Errorf("%s: %v, because: %v", reason, err, cause)
		}
		cancel()
		if err := client.Close(); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		fail(nil)
	}
}

// broken is a connection that can't be written to any more, and from which there is
// something left to read.
type broken struct {
	net.Conn
	left []error
}

var errWrite, errRefused = errors.New("broken pipe"), errors.New("certificate required")

func (*broken) Write([]byte) (int, error) { return 0, errWrite }

func (b *broken) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, io.EOF
	}
	next := b.left[0]
	b.left = b.left[1:]
	return min(len(p), 1), next
}

// TestWitness expects the first failure to be what the other side said, also where
// that was not read before a write failed.
func TestWitness(t *testing.T) {
	for reason, test := range map[string]struct {
		left []error
		want error
	}{
		"a refusal":              {[]error{errRefused}, errRefused},
		"a refusal after data":   {[]error{nil, nil, errRefused}, errRefused},
		"an end without reason":  {nil, io.EOF},
		"closed by this process": {[]error{net.ErrClosed}, nil},
	} {
		var got []error
		w := witness{&broken{left: test.left}, func(err error) { got = append(got, err) }}
		if _, err := w.Write([]byte("x")); !errors.Is(err, errWrite) {
			t.Errorf("%s: the writer is told %v", reason, err)
		}
		if test.want == nil && len(got) > 0 || test.want != nil && (len(got) == 0 || !errors.Is(got[0], test.want)) {
			t.Errorf("%s: reported as %v", reason, got)
		}
	}
}

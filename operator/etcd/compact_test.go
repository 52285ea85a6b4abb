package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// compacting is a member that drops history. It answers as etcd does: that a revision was
// compacted before, once its file has been through that, and nothing while it is not.
type compacting struct {
	etcdserverpb.UnimplementedKVServer
	// through is closed once its file has been through the compaction.
	through chan struct{}
	// before is true where another member was asked first.
	before bool
}

// Compact implements etcdserverpb.KVServer.
func (c *compacting) Compact(ctx context.Context, request *etcdserverpb.CompactionRequest) (*etcdserverpb.CompactionResponse, error) {
	if request.Physical {
		select {
		case <-c.through:
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	if c.before {
		return nil, rpctypes.ErrGRPCCompacted
	}
	return &etcdserverpb.CompactionResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
}

// TestCompact has a compaction count as complete when the file of every member has been
// through it, whichever of them was asked first, and not when one did not answer in time.
func TestCompact(t *testing.T) {
	for _, test := range []struct {
		reason  string
		pending int // the member whose file is not through
		says    string
	}{
		{"all are through", -1, ""},
		{"the one that was asked first is not", 0, "member m0"},
		{"one that says that it was compacted before is not", 2, "member m2"},
	} {
		certificate := httptest.NewTLSServer(nil)
		certificate.Close()
		roots := x509.NewCertPool()
		roots.AddCert(certificate.Certificate())
		access := Access{Endpoints: map[string]string{}, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, Timeout: time.Minute}
		var members []*compacting
		for i, name := range []string{"m0", "m1", "m2"} {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			member := &compacting{through: make(chan struct{}), before: i > 0}
			if i != test.pending {
				close(member.through)
			}
			members = append(members, member)
			server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: certificate.TLS.Certificates, MinVersion: tls.VersionTLS12})))
			etcdserverpb.RegisterKVServer(server, member)
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(server.Stop)
			access.Endpoints[name] = "https://" + listener.Addr().String()
		}
		ctx, cancel := context.WithCancel(t.Context())
		if test.pending >= 0 {
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		}
		err := access.Compact(ctx, 7)
		cancel()
		if (err != nil) != (test.says != "") || err != nil && (!strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "revision 7 is not known to be complete, and is asked for again")) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if test.pending < 0 {
			continue
		}
		close(members[test.pending].through)
		if err := access.Compact(t.Context(), 7); err != nil {
			t.Errorf("%s: asked again: %v", test.reason, err)
		}
	}
	if err := (Access{}).Compact(t.Context(), 7); err == nil {
		t.Error("it is complete without a member")
	}
}

package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// large is an etcd with objects of a size. A hostile one sends all of them, however
// few it is asked for.
type large struct {
	etcdserverpb.UnimplementedKVServer
	objects, size int
	hostile       bool
}

// Range returns the objects from a key on.
func (l *large) Range(_ context.Context, request *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	out := &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{Revision: 1}}
	content := append([]byte(`{"apiVersion": "example.org/v1"}`), bytes.Repeat([]byte(" "), l.size)...)
	for i := range l.objects {
		key := fmt.Appendf(nil, "/registry/%06d", i)
		if bytes.Compare(key, request.Key) < 0 {
			continue
		}
		out.Count++
		if !l.hostile && int64(len(out.Kvs)) == request.Limit {
			out.More = true
			continue
		}
		out.Kvs = append(out.Kvs, &mvccpb.KeyValue{Key: key, Value: content})
	}
	return out, nil
}

// TestBound reads from an etcd whose objects are too large for a page of them, and
// from one that sends more than it was asked for.
func TestBound(t *testing.T) {
	for _, test := range []struct {
		reason string
		etcd   *large
		says   string
	}{
		{"small objects", &large{objects: 1201, size: 10}, ""},
		{"large objects are read in smaller pages", &large{objects: 70, size: 1 << 20}, ""},
		{"an etcd that sends without end", &large{objects: 70, size: 1 << 20, hostile: true}, "larger than max"},
	} {
		certificate := httptest.NewTLSServer(nil)
		certificate.Close()
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: certificate.TLS.Certificates, MinVersion: tls.VersionTLS12})))
		etcdserverpb.RegisterKVServer(server, test.etcd)
		go func() { _ = server.Serve(listener) }()
		roots := x509.NewCertPool()
		roots.AddCert(certificate.Certificate())
		access := Access{Endpoints: map[string]string{"m": "https://" + listener.Addr().String()}, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, Timeout: time.Minute}
		objects, last, left := 0, "", 1
		for left > 0 && err == nil {
			var stored Stored
			stored, err = access.Stored(t.Context(), "/registry/", last, func(_ string, content []byte) error {
				_, err := StoredVersion(content)
				return err
			})
			objects, last, left = objects+stored.Objects, stored.Last, stored.Left
		}
		server.Stop()
		if (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
		if err == nil && objects != test.etcd.objects {
			t.Errorf("%s: %d objects", test.reason, objects)
		}
	}
}

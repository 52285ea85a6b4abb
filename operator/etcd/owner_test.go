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
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// keeping is an etcd with the one key OwnerKey. It is asked for one thing at a time.
type keeping struct {
	etcdserverpb.UnimplementedKVServer
	revision int64
	kv       *mvccpb.KeyValue
	// marked is whether it has the key MarkKey, which its user may not read where denied is true.
	marked, denied bool
	// lost counts the answers to transactions that are to be lost after they were done.
	lost int
}

// Range implements etcdserverpb.KVServer.
func (k *keeping) Range(_ context.Context, request *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	out := &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{Revision: k.revision}}
	switch key := string(request.Key); {
	case key == MarkKey && k.denied:
		return nil, status.Error(codes.PermissionDenied, "etcdserver: permission denied")
	case key == MarkKey && k.marked:
		out.Count = 1
	case key == OwnerKey && k.kv != nil:
		out.Kvs, out.Count = append(out.Kvs, k.kv), 1
	}
	return out, nil
}

// Txn implements etcdserverpb.KVServer.
func (k *keeping) Txn(ctx context.Context, request *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	if len(request.Compare) == 0 { // it reads alone, MarkKey among others
		if _, err := k.Range(ctx, request.Success[0].GetRequestRange()); err != nil {
			return nil, err
		}
		return &etcdserverpb.TxnResponse{Succeeded: true, Header: &etcdserverpb.ResponseHeader{Revision: k.revision}}, nil
	}
	if len(request.Compare) != 1 || string(request.Compare[0].Key) != OwnerKey || request.Compare[0].Target != etcdserverpb.Compare_MOD {
		return nil, status.Error(codes.InvalidArgument, "it is to compare where the key was written")
	}
	at := int64(0)
	if k.kv != nil {
		at = k.kv.ModRevision
	}
	out := &etcdserverpb.TxnResponse{Succeeded: at == request.Compare[0].GetModRevision()}
	operations := request.Failure
	if out.Succeeded {
		operations = request.Success
	}
	for _, operation := range operations {
		switch {
		case operation.GetRequestPut() != nil:
			k.revision++
			k.kv = &mvccpb.KeyValue{Key: []byte(OwnerKey), Value: operation.GetRequestPut().Value, ModRevision: k.revision}
		case operation.GetRequestDeleteRange() != nil:
			k.revision++
			k.kv = nil
		default:
			answer, err := k.Range(ctx, operation.GetRequestRange())
			if err != nil {
				return nil, err
			}
			out.Responses = append(out.Responses, &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: answer}})
		}
	}
	if out.Header = (&etcdserverpb.ResponseHeader{Revision: k.revision}); k.lost > 0 {
		k.lost--
		return nil, status.Error(codes.Internal, "the answer is lost")
	}
	return out, nil
}

// keep starts the etcd with two members, which have the same data.
func keep(t *testing.T, etcd *keeping) Access {
	t.Helper()
	certificate := httptest.NewTLSServer(nil)
	certificate.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certificate.Certificate())
	access := Access{Endpoints: map[string]string{}, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, Timeout: time.Minute}
	for _, name := range []string{"m0", "m1"} {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: certificate.TLS.Certificates, MinVersion: tls.VersionTLS12})))
		etcdserverpb.RegisterKVServer(server, etcd)
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		access.Endpoints[name] = "https://" + listener.Addr().String()
	}
	return access
}

// TestRead is told how far an etcd is, also by one whose user may read the keys of the servers
// alone.
func TestRead(t *testing.T) {
	for _, denied := range []bool{false, true} {
		access, position := keep(t, &keeping{revision: 7, denied: denied}), Position{}
		err := access.any(t.Context(), func(ctx context.Context, client *clientv3.Client) (err error) {
			position, err = read(ctx, client)
			return err
		})
		if err != nil || position != (Position{Revision: 7}) {
			t.Errorf("the mark may not be read: %t: %+v, %v", denied, position, err)
		}
	}
}

// TestOwn has an etcd belong to the first registry of two, to the second one only over what it
// has seen, and to no one when the one that it belongs to gives it up.
func TestOwn(t *testing.T) {
	etcd := &keeping{revision: 7}
	access := keep(t, etcd)
	first, second := Owner{Host: "h", Namespace: "team", Name: "first", UID: "1"}, Owner{Host: "h", Namespace: "team", Name: "second", UID: "2"}
	none, err := access.Owned(t.Context())
	if err != nil || none.Revision != 0 || none.By("") {
		t.Fatalf("nothing is written: %+v, %v", none, err)
	}
	etcd.lost = 1 // the other member tells that it was written
	if got, err := access.Own(t.Context(), first, none); err != nil || !got.By("1") || got.Revision != 8 {
		t.Errorf("the first one: %+v, %v", got, err)
	}
	got, err := access.Own(t.Context(), second, none)
	if err != nil || !got.By("1") || got.Name != "first" {
		t.Errorf("the second one, which has seen none: %+v, %v", got, err)
	}
	if err := access.Disown(t.Context(), "2"); err != nil || etcd.kv == nil {
		t.Errorf("the second one gives up what it never had: %v", err)
	}
	if got, err = access.Own(t.Context(), second, got); err != nil || !got.By("2") {
		t.Errorf("the second one takes over: %+v, %v", got, err)
	}
	if seen, err := access.Owned(t.Context()); err != nil || seen != got {
		t.Errorf("read is %+v, %v, want %+v", seen, err, got)
	}
	if err := access.Disown(t.Context(), "2"); err != nil || etcd.kv != nil {
		t.Errorf("the second one gives it up: %v", err)
	}
}

// TestOwnedByNoOne reads what names no registry, or not in full.
func TestOwnedByNoOne(t *testing.T) {
	for _, content := range []string{"", "mine", "{}", `{"host": "h", "namespace": "team", "name": "fleet"}`} {
		access := keep(t, &keeping{kv: &mvccpb.KeyValue{Key: []byte(OwnerKey), Value: []byte(content), ModRevision: 3}})
		if got, err := access.Owned(t.Context()); err != nil || got.Err == nil || got.By("") || got.Revision != 3 {
			t.Errorf("%q: %+v, %v", content, got, err)
		}
	}
	if _, err := (Access{Endpoints: map[string]string{"m": "http://plain"}}).Owned(t.Context()); err == nil || !strings.Contains(err.Error(), "read the key "+OwnerKey) {
		t.Errorf("an etcd that can't be asked: %v", err)
	}
}

// TestManaged reads of an etcd whether an operator runs it.
func TestManaged(t *testing.T) {
	for reason, test := range map[string]struct {
		etcd    *keeping
		managed bool
	}{
		"empty":                          {&keeping{}, false},
		"it has a mark":                  {&keeping{marked: true}, true},
		"its user may not read that":     {&keeping{denied: true}, false},
		"it has an owner, beside a mark": {&keeping{marked: true, kv: &mvccpb.KeyValue{Key: []byte(OwnerKey), Value: []byte(`{"host": "h", "namespace": "team", "name": "fleet", "uid": "1"}`), ModRevision: 3}}, false},
	} {
		if got, err := keep(t, test.etcd).Owned(t.Context()); err != nil || got.Managed != test.managed {
			t.Errorf("%s: %+v, %v", reason, got, err)
		}
	}
}

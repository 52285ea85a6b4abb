package snapshot

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/etcdclient"
)

// fake is a member that says what it is told to.
type fake struct {
	pb.UnimplementedKVServer
	pb.UnimplementedMaintenanceServer
	leads           bool
	hash            uint32
	compactRevision int64
	err             error
	// elections is how many reads are still refused, since there is an election; nil is none.
	elections *atomic.Int32
}

func (f fake) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	if f.elections != nil && f.elections.Add(-1) >= 0 {
		return nil, rpctypes.ErrGRPCLeaderChanged
	}
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 9}}, nil
}

func (f fake) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	leader := uint64(2)
	if f.leads {
		leader = 1
	}
	return &pb.StatusResponse{Header: &pb.ResponseHeader{MemberId: 1}, Leader: leader, Version: "3.7.3"}, nil
}

func (f fake) HashKV(_ context.Context, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	return &pb.HashKVResponse{Header: &pb.ResponseHeader{}, Hash: f.hash, CompactRevision: f.compactRevision, HashRevision: r.Revision}, f.err
}

// serve starts members, of which those that are nil are down.
func serve(t *testing.T, members ...*fake) Etcd {
	t.Helper()
	files, err := selfSigned(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Etcd{Endpoints: endpoints(t, files, members), Files: files}
}

func endpoints(t *testing.T, files etcdclient.Files, members []*fake) []string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range members {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, "https://"+listener.Addr().String())
		if m == nil {
			_ = listener.Close()
			continue
		}
		server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})))
		pb.RegisterKVServer(server, m)
		pb.RegisterMaintenanceServer(server, m)
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
	}
	return out
}

func TestHash(t *testing.T) {
	same := &fake{hash: 7, compactRevision: 3}
	compacted := &fake{err: rpctypes.ErrGRPCCompacted}
	elects := &fake{hash: 7, compactRevision: 3, elections: &atomic.Int32{}}
	elects.elections.Store(2)
	for _, test := range []struct {
		reason  string
		members []*fake
		want    int // how many agree
		says    string
	}{
		{"all agree", []*fake{same, same, same}, 3, ""},
		{"the only one", []*fake{same}, 1, ""},
		{"a leader is elected meanwhile", []*fake{same, elects, same}, 3, ""},
		{"one is down", []*fake{nil, same, same}, 2, ""},
		{"two are down", []*fake{same, nil, nil}, 0, "only 1 of 3 etcd members say what data they hold at revision 9"},
		{"one does not say", []*fake{same, same, {err: errors.New("busy")}}, 2, ""},
		{"one differs", []*fake{same, same, {hash: 8, compactRevision: 3}}, 0, "hold different data at revision 9: one of them is corrupt"},
		{"one was compacted", []*fake{same, {hash: 8, compactRevision: 4}, same}, 0, errCompacted.Error()},
		{"compacted past the revision", []*fake{same, compacted, same}, 0, errCompacted.Error()},
		{"there is no member", nil, 0, "only 0 of 0"},
	} {
		got, err := serve(t, test.members...).Hash(t.Context(), 9)
		if test.says == "" && (err != nil || got != contract.KeysHash{Hash: 7, CompactRevision: 3, Members: test.want}) {
			t.Errorf("%s: %+v, %v", test.reason, got, err)
		}
		if test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v, want %s", test.reason, err, test.says)
		}
	}
}

// TestSaveCompared keeps a snapshot that is there only if the members hold the same data.
func TestSaveCompared(t *testing.T) {
	same, whole := &fake{hash: 7, compactRevision: 3}, snapshotOf(t, buckets{"key": {string(key(9)): nil}, "meta": {}})
	ours := contract.Snapshot{Name: "a", Revision: 9, Bytes: int64(len(whole)), Version: "3.6.14"}
	for _, test := range []struct {
		reason  string
		members []*fake
		says    string
	}{
		{"all agree", []*fake{same, same, same}, ""},
		{"one is down", []*fake{nil, same, same}, ""},
		{"one differs", []*fake{same, same, {hash: 8, compactRevision: 3}}, "hold different data at revision 9"},
		{"it is older than what etcd was compacted to, and none other can be saved", []*fake{same, {err: rpctypes.ErrGRPCCompacted}}, "Unimplemented"},
	} {
		dir := t.TempDir()
		put(t, dir, "a.db", whole)
		putNote(t, dir, "a", note{Snapshot: ours})
		got, err := SaveCompared(t.Context(), serve(t, test.members...), dir, "a")
		if test.says == "" && (err != nil || got != ours) || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %+v, %v; want %q", test.reason, got, err, test.says)
		}
	}
}

// TestChoose takes the leader only if there is no other member.
func TestChoose(t *testing.T) {
	leader, follower := &fake{leads: true}, &fake{}
	for _, test := range []struct {
		reason  string
		members []*fake
		want    int
	}{
		{"a follower after the leader", []*fake{leader, follower, follower}, 1},
		{"a follower before the leader", []*fake{follower, leader}, 0},
		{"the first follower is down", []*fake{leader, nil, follower}, 2},
		{"the leader is the only one that answers", []*fake{nil, leader, nil}, 1},
	} {
		etcd := serve(t, test.members...)
		if got, err := etcd.choose(t.Context()); err != nil || got.endpoint != etcd.Endpoints[test.want] || got.version != "3.7.3" || got.revision != 9 {
			t.Errorf("%s: %+v, %v; want %s", test.reason, got, err, etcd.Endpoints[test.want])
		}
	}
}

package simulation

import (
	"context"
	"net"
	"slices"
	"syscall"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/etcdclient"
)

// dialEtcd connects to the member that a pod runs.
func (w *world) dialEtcd(ctx context.Context, m etcdclient.Member) (net.Conn, error) {
	for _, uid := range sorted(w.pods) {
		if p := w.pods[uid]; net.JoinHostPort(p.address, contract.EtcdClientPort) == m.Address && p.disk != nil && p.runs {
			if err := w.trusted(p, m); err != nil {
				return nil, err
			}
			return p.listener().DialContext(ctx)
		}
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// listener returns where a member takes connections.
func (p *process) listener() *bufconn.Listener {
	if p.server != nil {
		return p.accepts
	}
	const buffer = 1 << 12 // what is said is short
	p.accepts, p.server = bufconn.Listen(buffer), grpc.NewServer(grpc.ReadBufferSize(buffer), grpc.WriteBufferSize(buffer))
	api := &memberServer{p: p}
	pb.RegisterKVServer(p.server, api)
	pb.RegisterClusterServer(p.server, api)
	pb.RegisterMaintenanceServer(p.server, api)
	go func() { _ = p.server.Serve(p.accepts) }() // until it is stopped
	return p.accepts
}

// memberServer is what an etcd member answers.
type memberServer struct {
	pb.UnimplementedKVServer
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer
	p *process
}

// errNoLeader is what a member answers that has none, or has no vote.
var errNoLeader = rpctypes.ErrGRPCNoLeader

func (s *memberServer) header() *pb.ResponseHeader {
	e, d := s.p.w.etcd, s.p.disk
	return &pb.ResponseHeader{ClusterId: d.cluster, MemberId: d.member, Revision: s.p.revision(), RaftTerm: e.term}
}

// led returns an error of a member that serves no linearizable requests.
func (s *memberServer) led() error {
	m, is := s.p.w.etcd.find(s.p.disk.member)
	if !s.p.serves() || s.p.w.etcd.leader == 0 || s.p.disk.ends() || !is || m.learner {
		return errNoLeader
	}
	return nil
}

// Status implements pb.MaintenanceServer.
func (s *memberServer) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	e, d := s.p.w.etcd, s.p.disk
	m, _ := e.find(d.member)
	index := uint64(d.index) //nolint:gosec // G115: it counts entries
	return &pb.StatusResponse{Header: s.header(), Version: s.p.version, StorageVersion: s.p.version[:3] + ".0", Leader: e.leader, IsLearner: m.learner,
		RaftTerm: e.term, RaftIndex: index, RaftAppliedIndex: index, DbSize: 1 << 20, DbSizeInUse: 1 << 20, DbSizeQuota: 4 << 30}, nil
}

// MemberList implements pb.ClusterServer.
func (s *memberServer) MemberList(_ context.Context, request *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	e, members := s.p.w.etcd, s.p.w.etcd.last().members
	if !request.Linearizable {
		if members = nil; s.p.disk.index > 0 && s.p.disk.index <= len(e.log) {
			members = e.log[s.p.disk.index-1].members
		}
	} else if err := s.led(); err != nil {
		return nil, err
	}
	out := &pb.MemberListResponse{Header: s.header()}
	for _, m := range members {
		listed := &pb.Member{ID: m.id, PeerURLs: []string{m.url}, IsLearner: m.learner}
		if m.named {
			listed.Name = m.name
		}
		out.Members = append(out.Members, listed)
	}
	return out, nil
}

// added is below the IDs of members that are added.
const added = 0xa000

// MemberAdd implements pb.ClusterServer.
func (s *memberServer) MemberAdd(_ context.Context, request *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	if err := s.led(); err != nil {
		return nil, err
	}
	w := s.p.w
	if all, running := w.voters(); len(all) > 1 && len(running) < (len(all)+1)/2+1 {
		return nil, rpctypes.ErrGRPCUnhealthy
	}
	for _, m := range w.etcd.last().members {
		if m.learner {
			return nil, rpctypes.ErrGRPCTooManyLearners
		}
		if m.url == request.PeerURLs[0] {
			return nil, rpctypes.ErrGRPCPeerURLExist
		}
	}
	w.checkChange(nameOf(request.PeerURLs[0]) + " is added")
	w.etcd.lastID++
	added := member{id: added + w.etcd.lastID, name: nameOf(request.PeerURLs[0]), url: request.PeerURLs[0], learner: true}
	w.reconfigures(func(members []member) []member { return append(members, added) })
	return &pb.MemberAddResponse{Header: s.header(), Member: &pb.Member{ID: added.id, PeerURLs: request.PeerURLs, IsLearner: true}}, nil
}

// MemberPromote implements pb.ClusterServer.
func (s *memberServer) MemberPromote(_ context.Context, request *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	if err := s.led(); err != nil {
		return nil, err
	}
	w := s.p.w
	p := w.holder(request.ID)
	if p == nil || p.disk.index*10 < len(w.etcd.log)*9 || p.disk.forked {
		return nil, rpctypes.ErrGRPCLearnerNotReady
	}
	w.checkChange(p.name + " gets its vote")
	w.reconfigures(func(members []member) []member {
		for i := range members {
			if members[i].id == request.ID {
				members[i].learner = false
			}
		}
		return members
	})
	return &pb.MemberPromoteResponse{Header: s.header()}, nil
}

// MemberRemove implements pb.ClusterServer. Etcd refuses where those that are left and run are
// no majority.
func (s *memberServer) MemberRemove(_ context.Context, request *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	if err := s.led(); err != nil {
		return nil, err
	}
	w := s.p.w
	m, is := w.etcd.find(request.ID)
	if !is {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	w.checkChange(m.name + " is removed")
	all, running := w.voters()
	if !m.learner {
		left := slices.DeleteFunc(running, func(p *process) bool { return p.disk.member == m.id })
		if len(left) < (len(all)-1)/2+1 {
			return nil, rpctypes.ErrGRPCUnhealthy
		}
		w.checkRemoval(m, left)
	}
	w.reconfigures(func(members []member) []member {
		return slices.DeleteFunc(members, func(m member) bool { return m.id == request.ID })
	})
	if w.etcd.leader == request.ID {
		w.etcd.leader = 0
	}
	return &pb.MemberRemoveResponse{Header: s.header()}, nil
}

// MoveLeader implements pb.MaintenanceServer.
func (s *memberServer) MoveLeader(_ context.Context, request *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	w := s.p.w
	p := w.holder(request.TargetID)
	if p == nil || s.led() != nil {
		return nil, rpctypes.ErrGRPCBadLeaderTransferee
	}
	p.disk.index = len(w.etcd.log) // it gets what it lacks first
	w.etcd.leader = request.TargetID
	w.etcd.term++
	return &pb.MoveLeaderResponse{Header: s.header()}, nil
}

// Alarm implements pb.MaintenanceServer.
func (s *memberServer) Alarm(context.Context, *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	return &pb.AlarmResponse{Header: s.header()}, s.led()
}

// HashKV implements pb.MaintenanceServer.
func (s *memberServer) HashKV(_ context.Context, request *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	revision := request.Revision
	if revision == 0 {
		revision = s.p.revision()
	}
	if revision > s.p.revision() {
		return nil, rpctypes.ErrGRPCFutureRev
	}
	return &pb.HashKVResponse{Header: s.header(), Hash: uint32(revision)*31 + uint32(s.p.disk.other), CompactRevision: 1, HashRevision: revision}, nil //nolint:gosec // G115: a hash
}

// Range implements pb.KVServer. But for the operator's mark, no key is of interest.
func (s *memberServer) Range(_ context.Context, request *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := s.led(); err != nil && !request.Serializable {
		return nil, err
	}
	if request.Revision > 0 && request.Revision < s.p.w.etcd.compacted {
		return nil, rpctypes.ErrGRPCCompacted
	}
	return s.get(request), nil
}

func (s *memberServer) get(request *pb.RangeRequest) *pb.RangeResponse {
	e, out := s.p.w.etcd, &pb.RangeResponse{Header: s.header()}
	if mark, version := e.mark(); string(request.Key) == markKey && mark > 0 {
		out.Kvs, out.Count = []*mvccpb.KeyValue{{Key: request.Key, ModRevision: mark, Version: version}}, 1
	}
	return out
}

// markKey is the key that the operator writes into etcd.
const markKey = "/clusterregistry-operator/mark"

// Txn implements pb.KVServer: reads, and the operator's mark.
func (s *memberServer) Txn(_ context.Context, request *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := s.led(); err != nil {
		return nil, err
	}
	e, w := s.p.w.etcd, s.p.w
	out := &pb.TxnResponse{Succeeded: true}
	mark, _ := e.mark()
	for _, compare := range request.Compare {
		out.Succeeded = out.Succeeded && string(compare.Key) == markKey && compare.GetModRevision() == mark
	}
	if out.Succeeded {
		for _, operation := range request.Success {
			if read := operation.GetRequestRange(); read != nil {
				out.Responses = append(out.Responses, &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: s.get(read)}})
			} else if operation.GetRequestPut() != nil {
				w.puts(1)
				e.marks = append(e.marks, e.last().revision)
			}
		}
	}
	s.p.disk.index = len(e.log) // a linearizable request waits for that
	out.Header = s.header()
	return out, nil
}

// Compact implements pb.KVServer.
func (s *memberServer) Compact(context.Context, *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	return &pb.CompactionResponse{Header: s.header()}, s.led()
}

// Defragment implements pb.MaintenanceServer.
func (s *memberServer) Defragment(context.Context, *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	e := s.p.w.etcd
	if e.defragmented == nil {
		e.defragmented = map[uint64]bool{}
	}
	e.defragmented[s.p.disk.member] = true
	return &pb.DefragmentResponse{Header: s.header()}, nil
}

package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// memberStatus is what etcdctl says of a member.
type memberStatus struct {
	Status struct {
		Header struct {
			MemberID uint64 `json:"member_id"`
			Revision int64  `json:"revision"`
		} `json:"header"`
		Leader uint64
	}
}

func (e *Env) memberStatus(ctx context.Context, member string) (memberStatus, error) {
	var status []memberStatus
	if err := e.etcdctlJSON(ctx, &status, member, "endpoint", "status"); err != nil {
		return memberStatus{}, err
	}
	if len(status) != 1 {
		return memberStatus{}, fmt.Errorf("etcdctl on %s reports the status of %d members", member, len(status))
	}
	return status[0], nil
}

func (e *Env) etcdctlJSON(ctx context.Context, into any, member string, args ...string) error {
	out, err := e.Etcdctl(ctx, member, append(args, "--write-out=json")...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// EtcdLeader returns the name of the member that leads a registry's own etcd, which must
// have one.
func (e *Env) EtcdLeader(registry *operatorv1alpha1.ClusterRegistry) (name string) {
	e.t.Helper()
	e.Eventually("etcd to have a leader", func(ctx context.Context) error {
		for _, member := range registry.Status.Etcd.Members {
			s, err := e.memberStatus(ctx, member.Name)
			if err != nil {
				continue // it may be the one that is replaced
			}
			if s.Status.Leader == s.Status.Header.MemberID {
				name = member.Name
				return nil
			}
		}
		return fmt.Errorf("none of %+v leads", registry.Status.Etcd.Members)
	})
	return name
}

// WaitSameData waits until all members of a registry's own etcd have the same data, by the
// hash that each makes of it in one revision. A compaction in between makes hashes differ, so
// they are asked for again.
func (e *Env) WaitSameData(registry *operatorv1alpha1.ClusterRegistry) {
	e.t.Helper()
	e.Eventually("all etcd members to have the same data", func(ctx context.Context) error {
		members := registry.Status.Etcd.Members
		if len(members) != int(registry.Spec.Etcd.Replicas) {
			return fmt.Errorf("the status lists %d etcd members of %d", len(members), registry.Spec.Etcd.Replicas)
		}
		first, err := e.memberStatus(ctx, members[0].Name)
		if err != nil {
			return err
		}
		hashes := map[uint32][]string{}
		for _, member := range members {
			var answer []struct{ HashKV struct{ Hash uint32 } }
			if err := e.etcdctlJSON(ctx, &answer, member.Name, "endpoint", "hashkv", "--rev="+strconv.FormatInt(first.Status.Header.Revision, 10)); err != nil {
				return err
			}
			if len(answer) != 1 || answer[0].HashKV.Hash == 0 {
				return fmt.Errorf("etcdctl on %s reports no hash: %+v", member.Name, answer)
			}
			hashes[answer[0].HashKV.Hash] = append(hashes[answer[0].HashKV.Hash], member.Name)
		}
		if len(hashes) != 1 {
			return fmt.Errorf("in revision %d the hashes differ: %v", first.Status.Header.Revision, hashes)
		}
		return nil
	})
}

// DropHistory compacts etcd to its present revision, as the servers do minutes later: until then
// no encryption key is removed under which something in its history is.
func (e *Env) DropHistory(ctx context.Context, registry *operatorv1alpha1.ClusterRegistry) error {
	member := registry.Status.Etcd.Members[0].Name
	now, err := e.memberStatus(ctx, member)
	if err != nil {
		return err
	}
	_, err = e.Etcdctl(ctx, member, "compact", strconv.FormatInt(now.Status.Header.Revision, 10))
	return err
}

package etcd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// DataDiffers is the error of members that hold different data.
type DataDiffers struct {
	// First and Second are the names of two members that do.
	First, Second string
	Revision      int64
}

// Error names the members.
func (e *DataDiffers) Error() string {
	return fmt.Sprintf("members %s and %s hold different data at revision %d", e.First, e.Second, e.Revision)
}

// DataSame is the error of a member that holds the same data as all others.
type DataSame struct {
	Member   string
	Revision int64
}

// Error names the member.
func (e *DataSame) Error() string {
	return fmt.Sprintf("member %s holds the same data as the others at revision %d", e.Member, e.Revision)
}

// NoAnswer is the error of a member that did not say which data it holds, while all others agree.
type NoAnswer struct {
	Member string
	Err    error
}

// Error names the member.
func (e *NoAnswer) Error() string {
	return fmt.Sprintf("member %s, unlike the others, did not say which data it holds: %s", e.Member, e.Err)
}

// Unwrap returns why.
func (e *NoAnswer) Unwrap() error { return e.Err }

// Agree returns nil when all members hold the same data: the hash of all keys up
// to one revision is the same everywhere. It returns *DataDiffers when they do not. A
// compaction between the questions is an error, too: ask again then.
func (a Access) Agree(ctx context.Context) error {
	var revision int64
	if err := a.any(ctx, func(ctx context.Context, client *clientv3.Client) error {
		answer, err := client.Get(ctx, "revision")
		if err == nil {
			revision = answer.Header.Revision
		}
		return err
	}); err != nil {
		return err
	}
	_, err := a.agree(ctx, slices.Sorted(maps.Keys(a.Endpoints)), revision)
	return err
}

// hashTime is how long a member may take to read all of its data, unless Access.Timeout is longer.
const hashTime = 30 * time.Second

// Outlier returns nil when all members but the given one hold the same data, and are a
// majority, and that one holds other data. It works while the alarm CORRUPT
// is raised, when no member takes writes. With no member given, all are to hold the
// same data. It returns *DataDiffers when others do not, *DataSame when that one holds the
// same, and *NoAnswer when it does not say. Each of them scans all its data for it: see Comparisons.
func (a Access) Outlier(ctx context.Context, member string) error {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(a.Endpoints)), func(name string) bool { return name == member })
	if len(others) < len(a.Endpoints)/2+1 {
		return fmt.Errorf("without member %s, the %d that are left do not form a majority", member, len(others))
	}
	first, err := a.hash(ctx, others[0], 0)
	if err != nil {
		return err
	}
	agreed, err := a.agree(ctx, others, first.HashRevision)
	if err != nil || member == "" {
		return err
	}
	its, err := a.hash(ctx, member, first.HashRevision)
	if err != nil {
		return &NoAnswer{member, err}
	}
	if its.Hash == agreed.Hash && its.CompactRevision == agreed.CompactRevision {
		return &DataSame{member, first.HashRevision}
	}
	return nil
}

// agree returns the hash that all the given members have at a revision.
func (a Access) agree(ctx context.Context, names []string, revision int64) (first *pb.HashKVResponse, err error) {
	for _, name := range names {
		answer, err := a.hash(ctx, name, revision)
		switch {
		case err != nil:
			return nil, err
		case first == nil:
			first = answer
		case answer.CompactRevision != first.CompactRevision:
			return nil, fmt.Errorf("etcd was compacted while its members' data was compared")
		case answer.Hash != first.Hash:
			return nil, &DataDiffers{names[0], name, revision}
		}
	}
	return first, nil
}

// hash asks a member for the hash of its data up to a revision, 0 for its newest.
func (a Access) hash(ctx context.Context, name string, revision int64) (answer *pb.HashKVResponse, err error) {
	a.Timeout = max(a.Timeout, hashTime)
	err = a.call(ctx, name, func(ctx context.Context, client *clientv3.Client) (err error) {
		answer, err = pb.NewMaintenanceClient(client.ActiveConnection()).HashKV(ctx, &pb.HashKVRequest{Revision: revision})
		return rpctypes.Error(err)
	})
	return answer, err
}

package recovery

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterregistry/operator/helper/snapshot"
	"github.com/clusterregistry/operator/internal/contract"
)

// disarm ends the alarm CORRUPT in the copy, where it names other members alone: it would become
// a part of the new data, and keep that from being written to. One that names this member, or
// could not say which one is wrong, is the last that is known of this data, since no other
// member is left to compare it with: then the copy is not used, which etcd would let be read.
func (r Recovery) disarm(ctx context.Context, server *snapshot.Server, patience time.Duration) error {
	named, err := server.Corrupt(ctx, patience)
	if err != nil {
		return notStarted(err)
	}
	if err := r.judge(named); err != nil || len(named) == 0 {
		return err
	}
	if err := server.DisarmCorrupt(ctx, named); err != nil {
		return fmt.Errorf("disarm the alarm CORRUPT in the copy: %w (etcd says: %s)", err, server.Log())
	}
	r.say("etcd's alarm CORRUPT, which named member ID %s, is disarmed in the copy: that member's data is given up. That the data of %s is what the others had can't be compared any more", strings.Join(ids(named), ", "), r.Member)
	return nil
}

// judge returns why data is not used of which the alarm CORRUPT names some members, 0 for none in
// particular.
func (r Recovery) judge(named []uint64) error {
	what := ""
	switch {
	case slices.Contains(ids(named), r.MemberID):
		what = fmt.Sprintf("etcd's alarm CORRUPT names it (ID %s): when the quorum was lost, its data differed from that of a majority, and is probably wrong", r.MemberID)
	case slices.Contains(named, 0):
		what = "etcd's alarm CORRUPT names no member: when the quorum was lost, the members held different data, and which of them was right is not known"
	default:
		return nil
	}
	return fmt.Errorf("%s. Set spec.recovery to another member or to a backup. If there is none, keep the volume of claim %s, and have someone who knows etcd say what of its data can be used", what, contract.EtcdMemberClaim(r.Member))
}

// ids formats IDs as they are recorded.
func ids(named []uint64) []string {
	var out []string
	for _, id := range named {
		out = append(out, strconv.FormatUint(id, 16))
	}
	return out
}

// Package contract has what two programs of this project agree on without calling
// each other. A change here is a change of both, and of those of earlier releases
// that still run.
package contract

// The keys of the record of an etcd's identity, a ConfigMap that the operator writes
// and that the guard in each member's pod reads.
const (
	// RecordState has StateNew or StateExisting, and is never absent.
	RecordState = "initial-cluster-state"
	// RecordCluster has the ID of the cluster, as etcdctl prints it; empty until known.
	RecordCluster = "cluster-id"
	// RecordMember, followed by the name of a member, has the ID of that one.
	RecordMember = "member-id."
	// RecordMembers has the names of all members that there are, or that are to form a new
	// etcd, with RecordSeparator between them. It says whom a member that starts without
	// data begins with, or asks whether it may.
	RecordMembers = "members"
	// RecordJoining has the name of the member that may start without data, under the ID
	// that is recorded of it, as long as the members that run list it as a learner that was
	// never started; empty or absent when there is none.
	RecordJoining = "joining"
	// RecordLineage has the ID of the data, which is the name of the directory that its
	// backups are in; absent as long as none was taken. It is another one when a backup was
	// restored: what the restored etcd writes is not what followed in the first one.
	RecordLineage = "lineage"
	// RecordRestore has the ID of a restore, which is the lineage that it begins, from before
	// it begins until etcd has served what was restored; empty or absent otherwise. Only as
	// long as it is there does an init container restore into a volume without data. The IDs
	// that the restored etcd will have are recorded already, so the guard takes no other data,
	// and lets no member start without.
	RecordRestore = "restore"
	// RecordRecovery has a Recovery as JSON, from before a lost quorum is recovered with the data
	// of a member until etcd has served that; empty or absent otherwise. The IDs that the
	// recovered etcd will have are recorded already.
	RecordRecovery = "recovery"
)

// RevisionBump is by how much etcd's revision is raised when a backup is restored, or a lost
// quorum is recovered: more than any client can have seen in the etcd of before, whose last
// revision may not be known any more.
const RevisionBump = 1_000_000_000

// Recovery says with whose data a lost quorum is recovered: the guard of that member makes the
// data of a new etcd of it, which has that member alone.
type Recovery struct {
	// Lineage is the ID of the data that begins with the recovery. It is the token of which
	// etcd makes the IDs of the new cluster and member.
	Lineage string `json:"lineage"`
	// Member is the name of the member.
	Member string `json:"member"`
	// ClusterID and MemberID are those that its data has until it is recovered, as etcdctl
	// prints them. No other data is touched.
	ClusterID string `json:"clusterID"`
	MemberID  string `json:"memberID"`
	// Revision is the lowest one that its data may end with: the one that the member said it
	// had, and that a person has approved.
	Revision int64 `json:"revision"`
}

// RecordSeparator is between the names of members.
const RecordSeparator = ","

// The states of a record, which are the values of etcd's --initial-cluster-state.
const (
	// StateNew is that of an etcd that was never complete: its members may start empty.
	StateNew = "new"
	// StateExisting is that of an etcd that has data.
	StateExisting = "existing"
)

// The exit codes of the guard when it does not let a member start. etcd itself, which the
// guard becomes otherwise, ends with 1 or 2.
const (
	// GuardRefused is that of a member whose data is lost or damaged.
	GuardRefused = 65
	// GuardWaits is that of a member of which it is not known yet whether it may start: the
	// record is late, incomplete or damaged, or no other member answers. No data is known to
	// be lost.
	GuardWaits = 66
	// GuardEmpty is that of a member that has no data, and is to have none, but may not start
	// before the members that run have said that it joins.
	GuardEmpty = 69
	// GuardForeign is that of a member whose volume has the data of another cluster or
	// member, or data that can't be read: the member's own may be elsewhere or come back.
	GuardForeign = 67
	// GuardUnrecovered is that of a member with whose data a lost quorum is to be recovered, and
	// could not be: for the reason that it prints. Its data is as it was, and the guard tries
	// again each time.
	GuardUnrecovered = 68
)

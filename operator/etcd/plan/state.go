package plan

import "fmt"

// Spec is what is asked for.
type Spec struct {
	// Replicas is the number of members: 1, 3 or 5.
	Replicas int
	// Replace are the IDs of members that a person wants replaced. One that is no longer a
	// member asks for nothing.
	Replace []string
}

// Record is what is recorded of an etcd and outlives the operator. Nothing else does:
// each decision is made from it and from what is observed.
type Record struct {
	// Registry is the name that the names of members begin with.
	Registry string
	// Formed is false until etcd has formed and its members are recorded.
	Formed bool
	// Target is the number of members that was last aimed at.
	Target int
	// IDs are those of the members, by ordinal: of all voters, and of the learner once it
	// is added.
	IDs map[int]string
	// Joining is the ordinal of the member that is being added, and Leaving that of one
	// that is being removed, None when there is none. Never are both set.
	Joining, Leaving int
	// Claim is the UID of the claim of the member that leaves.
	Claim string
	// Claimed is the number of ordinals, from 0 on, whose claims are of members or of pods
	// that the operator has asked for: at first as many as etcd was formed with. A claim of
	// another ordinal is someone else's.
	Claimed int
	// Abandoned are the UIDs of claims with data of before a lost quorum was recovered, by
	// ordinal: what they have may be nowhere else.
	Abandoned map[int]string
}

// None is the ordinal of no member.
const None = -1

// Observed is what there is.
type Observed struct {
	// Known is false while etcd's list of members is not known from a majority.
	Known bool
	// List is etcd's own list of members.
	List []Listed
	// Alarm is the type of an alarm that is raised; empty when none is, or when one is raised by a member
	// whose data is Lost for that.
	Alarm string
	// Outdated is true when the alarm CORRUPT is raised by a member that is removed, and the
	// members that are left hold the same data.
	Outdated bool
	// Size is the number of pods that the StatefulSet is to have, as its controller knows
	// it, Pods are those that there are, terminating ones too, and Claims the claims, each by
	// ordinal.
	Size   int
	Pods   map[int]Pod
	Claims map[int]Claim
	// Lost says why the data of a member is certainly gone, or not to be trusted, by
	// ordinal: its recorded directory is empty or damaged, its volume no longer exists.
	Lost map[int]string
	// Moves says why the volume of a member can't follow it to where it is to run, by
	// ordinal.
	Moves map[int]string
	// Misplaced says why the member that joins can't run where its new volume lies, and that
	// another one might lie there again; empty where it can, or Moves has it.
	Misplaced string
	// Recreate is true when the StatefulSet makes claims of another class than is asked for:
	// it is to be recreated before any member is replaced or added for that.
	Recreate bool
	// Named is the number of members whose names certificates that are issued have.
	Named int
	// Servers is the number of members that the servers use, all of them in one rollout.
	Servers int
	// Nodes is how many members the nodes have room for, by the constraints on how they
	// are spread.
	Nodes int
	// Snapshot is true while there is a fresh and verified snapshot.
	Snapshot bool
	// Differs says which members hold different data, and Uncompared why it is not known whether
	// any do. Both are empty where all hold the same, and matter only where there are more members
	// than are asked for: what the ones that go have alone would go with them.
	Differs, Uncompared string
	// Kept is true while there are old volumes of members that were replaced, which need not
	// be kept any longer than it takes for the new ones to serve.
	Kept bool
}

// NoSpace is the alarm under which etcd refuses writes, but no change of its members: those
// that are under way are completed, and members whose data is lost are replaced.
const NoSpace = "NOSPACE"

// Listed is a member in etcd's own list.
type Listed struct {
	ID string
	// Ordinal is that of the member whose URL it has, None for a URL of no member.
	Ordinal int
	// Named is false as long as it was never started.
	Named, Learner bool
	// Serves is true when the member itself answers under this ID, and completes reads: a
	// voter linearizable ones, a learner its own once it has caught up.
	Serves, Leads bool
}

// Pod is the pod of a member.
type Pod struct {
	// Claim is the UID of the claim that it was started with.
	Claim string
}

// Claim is the claim for a member's volume.
type Claim struct {
	UID string
	// Terminating is true once it is deleted and still used.
	Terminating bool
	// Retained is true when its volume outlives it.
	Retained bool
}

// Action is what to do in a step: one change, after which everything is observed again.
type Action string

// The actions. Those whose names begin with Record change the record, and nothing else.
const (
	// Done means that there is nothing to do.
	Done Action = "Done"
	// Wait means that something comes without a person, and Hold that a person is needed.
	Wait Action = "Wait"
	Hold Action = "Hold"
	// RecordTarget writes down the number of members to aim at.
	RecordTarget Action = "RecordTarget"
	// IssueNames has certificates issued with the names of Size members.
	IssueNames Action = "IssueNames"
	// RecordJoining writes down which member is added, before it is, and that its ordinal is
	// among those claimed.
	RecordJoining Action = "RecordJoining"
	// AddLearner adds the member to etcd as a learner.
	AddLearner Action = "AddLearner"
	// RecordID writes down the ID under which it was added; its guard lets it start then.
	RecordID Action = "RecordID"
	// RecreateSet has the StatefulSet be recreated, without its pods: claim templates are
	// immutable.
	RecreateSet Action = "RecreateSet"
	// Resize gives the StatefulSet Size pods.
	Resize Action = "Resize"
	// Promote gives the learner a vote, if etcd finds that it has caught up.
	Promote Action = "Promote"
	// Verify compares the data of all members that serve (HashKV) and, if it is the same,
	// writes down that no member joins any more.
	Verify Action = "Verify"
	// RecordLeaving writes down which member is removed, and the UID of its claim, before
	// it is. It is not joining any more.
	RecordLeaving Action = "RecordLeaving"
	// RecordStays takes that back.
	RecordStays Action = "RecordStays"
	// Disarm ends the alarm CORRUPT.
	Disarm Action = "Disarm"
	// MoveLeader has another member lead.
	MoveLeader Action = "MoveLeader"
	// Remove removes the member from etcd.
	Remove Action = "Remove"
	// RecordRemoved deletes its ID from the record.
	RecordRemoved Action = "RecordRemoved"
	// RecordClaimed writes down that the first Size ordinals are claimed, and no other ones.
	RecordClaimed Action = "RecordClaimed"
	// Retain has the volume of a claim outlive it.
	Retain Action = "Retain"
	// DeleteClaim deletes the claim with the UID.
	DeleteClaim Action = "DeleteClaim"
	// DeletePod deletes the pod of a member that etcd does not have.
	DeletePod Action = "DeletePod"
	// ReleaseVolume gives the old volume of a member that was replaced its reclaim policy back.
	ReleaseVolume Action = "ReleaseVolume"
	// RecordLeft writes down that no member joins or leaves any more.
	RecordLeft Action = "RecordLeft"
	// PointServers has the servers use the first Size members, in one rollout.
	PointServers Action = "PointServers"
	// TakeSnapshot takes a snapshot and verifies it.
	TakeSnapshot Action = "TakeSnapshot"
)

// Step is what to do next.
type Step struct {
	Action Action
	// Ordinal is that of the member that it is about, None when it is about no single one.
	Ordinal int
	// ID is that of the member in etcd, and UID that of its claim, where the action needs it.
	ID, UID string
	// Size is a number of members.
	Size int
	// Message says, for people, what is waited for or what to do.
	Message string
}

func wait(format string, args ...any) Step {
	return Step{Action: Wait, Ordinal: None, Message: fmt.Sprintf(format, args...)}
}

func hold(format string, args ...any) Step {
	return Step{Action: Hold, Ordinal: None, Message: fmt.Sprintf(format, args...)}
}

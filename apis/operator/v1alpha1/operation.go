package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Operation is a long operation, and how far it is. A registry has one at a time. Each
// phase is written here before it begins.
type Operation struct {
	// type is what is being done: Upgrade brings the registry to another release,
	// Defragmentation gives free space of etcd's files back, one member at a time, and
	// first compacts the history of an etcd that is full, Rotation replaces a CA by one
	// with another key, Scale changes the number of etcd's members, Replacement has a new
	// member take the place of one, Encryption changes the keys under which clusters are stored.
	// +required
	Type OperationType `json:"type"`

	// from is what the operation started from: of an upgrade the release, of a rotation the
	// CA that signs, with its generation, as in "etcd 1", of a change of etcd's size the
	// number of members, of a change of keys the one that writes.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from,omitempty"`

	// to is the target: of an upgrade the release, of a rotation the CA that is to sign, with
	// its generation, as in "etcd 2", of a change of etcd's size the number of members, of a
	// defragmentation or a replacement the member, of a change of keys the one that is to write.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	To string `json:"to,omitempty"`

	// phase is the present step. Those of an upgrade are Preflight, Snapshot, Etcd, Server,
	// Verification, StorageMigration, in this order, or Rollback when the servers return to the
	// previous release. Those of a defragmentation are Preflight and Defragmentation, for each
	// member, and between them Compaction when etcd is full. Those of a rotation are Preflight,
	// Issuance, Trust, Reissue, Server (of etcd's CA alone) and Withdrawal; the first that is
	// not done yet follows Preflight. A change of etcd's size or a replacement begins with
	// Preflight, and has MemberAddition, MemberRemoval, ServerEndpoints and, before etcd goes
	// down to one member, Snapshot, as often as needed. A change of keys has Preflight,
	// KeyAddition, KeyActivation, StorageMigration and KeyRemoval.
	// +required
	Phase OperationPhase `json:"phase"`

	// phaseStartedTime is when the phase began.
	// +required
	PhaseStartedTime metav1.Time `json:"phaseStartedTime"`

	// progress is the phase and its progress, such as "Etcd 2/3".
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Progress of the operation"
	Progress string `json:"progress,omitempty"`

	// phaseCompleted is true when the phase is complete and the next one is held, as by
	// spec.paused.
	// +optional
	PhaseCompleted bool `json:"phaseCompleted,omitempty"`

	// failingSince is since when the verification of the new servers fails. It is not
	// set while they pass it, or while something else is the cause.
	// +optional
	FailingSince *metav1.Time `json:"failingSince,omitempty"`

	// snapshot is the name of the snapshot of etcd that is taken beforehand.
	// +optional
	Snapshot string `json:"snapshot,omitempty"`

	// snapshotTime is when that snapshot was complete, of a change of etcd's size.
	// +optional
	SnapshotTime *metav1.Time `json:"snapshotTime,omitempty"`

	// message is why the operation is rolled back.
	// +optional
	Message string `json:"message,omitempty"`
}

// OperationType is a kind of operation. As in all of the status, the schema has no list of
// values, so that an operator can report one that the host cluster's definition does not know.
type OperationType string

const (
	// OperationUpgrade brings a registry to another release.
	OperationUpgrade OperationType = "Upgrade"
	// OperationDefragmentation gives free space of etcd's files back.
	OperationDefragmentation OperationType = "Defragmentation"
	// OperationRotation replaces a CA by one with another key.
	OperationRotation OperationType = "Rotation"
	// OperationScale changes the number of etcd's members.
	OperationScale OperationType = "Scale"
	// OperationEncryption changes the keys under which clusters are stored.
	OperationEncryption OperationType = "Encryption"
	// OperationReplacement has a new member of etcd take the place of one.
	OperationReplacement OperationType = "Replacement"
)

// OperationPhase is a step of an operation.
type OperationPhase string

// The phases of an upgrade, in their order.
const (
	// PhasePreflight waits until everything is ready. Nothing is changed.
	PhasePreflight OperationPhase = "Preflight"
	// PhaseSnapshot saves etcd, and verifies the snapshot by restoring it.
	PhaseSnapshot OperationPhase = "Snapshot"
	// PhaseEtcd replaces members one at a time, the leader last.
	PhaseEtcd OperationPhase = "Etcd"
	// PhaseServer replaces the servers, each when its successor is ready.
	PhaseServer OperationPhase = "Server"
	// PhaseVerification uses the new servers as clients do.
	PhaseVerification OperationPhase = "Verification"
	// PhaseStorageMigration rewrites what is stored in an older version of the API.
	PhaseStorageMigration OperationPhase = "StorageMigration"
	// PhaseRollback brings the servers back to the previous release.
	PhaseRollback OperationPhase = "Rollback"
)

// The phases of a defragmentation after PhasePreflight.
const (
	// PhaseCompaction drops the history of an etcd that is full.
	PhaseCompaction OperationPhase = "Compaction"
	// PhaseDefragmentation has a member rewrite its file.
	PhaseDefragmentation OperationPhase = "Defragmentation"
)

// The phases of a rotation after PhasePreflight, in their order. PhaseServer, before
// PhaseWithdrawal, is one of them where the CA is etcd's: servers are replaced by such as do
// not trust the previous one.
const (
	// PhaseIssuance has the new CA made. Nothing trusts it yet.
	PhaseIssuance OperationPhase = "Issuance"
	// PhaseTrust publishes both CAs, and waits until both are trusted.
	PhaseTrust OperationPhase = "Trust"
	// PhaseReissue has certificates issued by the new CA, and waits until they are shown.
	PhaseReissue OperationPhase = "Reissue"
	// PhaseWithdrawal drops the previous CA, and waits until nothing trusts it.
	PhaseWithdrawal OperationPhase = "Withdrawal"
)

// The phases of a change of etcd's members, beside PhasePreflight and PhaseSnapshot, in the
// order that the members need.
const (
	// PhaseMemberAddition adds a member as a learner, which gets a vote when it has the
	// data.
	PhaseMemberAddition OperationPhase = "MemberAddition"
	// PhaseMemberRemoval removes a member, its pod and its claim.
	PhaseMemberRemoval OperationPhase = "MemberRemoval"
	// PhaseServerEndpoints has the servers use the members that there are, or will be.
	PhaseServerEndpoints OperationPhase = "ServerEndpoints"
)

// The phases of a change of keys, after PhasePreflight and in their order, with
// PhaseStorageMigration before the last one.
const (
	// PhaseKeyAddition has all servers read with further keys. None writes with them.
	PhaseKeyAddition OperationPhase = "KeyAddition"
	// PhaseKeyActivation has all servers write with the key that is desired first.
	PhaseKeyActivation OperationPhase = "KeyActivation"
	// PhaseKeyRemoval drops keys that nothing is stored under any more.
	PhaseKeyRemoval OperationPhase = "KeyRemoval"
)

// Transition is an installation or an upgrade.
type Transition struct {
	// version is the release that it led to.
	// +required
	Version string `json:"version"`

	// state is Progressing, Completed, Abandoned when spec.version was changed
	// before it was complete, or RolledBack when it failed and the servers
	// returned to the previous release.
	// +required
	State TransitionState `json:"state"`

	// startTime is when it began.
	// +optional
	StartTime metav1.Time `json:"startTime,omitempty,omitzero"`

	// completionTime is when it ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// generation is the generation of the spec that asked for it. What was rolled
	// back is tried again when the spec has another one.
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// snapshot is the name of the snapshot of etcd that was taken before it, in the
	// claim <name>-snapshots.
	// +optional
	Snapshot string `json:"snapshot,omitempty"`

	// snapshotRevision is etcd's revision in the snapshot: all that was written
	// before it is in there.
	// +optional
	SnapshotRevision int64 `json:"snapshotRevision,omitempty"`

	// message has further details: why it was rolled back, why there is no
	// snapshot, or whose data an installation begins with.
	// +optional
	Message string `json:"message,omitempty"`
}

// TransitionState is how far an installation or upgrade is.
type TransitionState string

const (
	// TransitionProgressing is under way.
	TransitionProgressing TransitionState = "Progressing"
	// TransitionCompleted has reached its version.
	TransitionCompleted TransitionState = "Completed"
	// TransitionAbandoned was given up for another version.
	TransitionAbandoned TransitionState = "Abandoned"
	// TransitionRolledBack has failed, and the registry is what it was before.
	TransitionRolledBack TransitionState = "RolledBack"
)

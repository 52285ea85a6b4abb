package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Operation is a long operation, and how far it is. A registry has one at a time. Each
// phase is written here before it begins.
type Operation struct {
	// type is what is being done: Upgrade brings the registry to another release.
	// +required
	Type OperationType `json:"type"`

	// from is what was before: of an upgrade the release.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	From string `json:"from,omitempty"`

	// to is what is wanted: of an upgrade the release.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	To string `json:"to,omitempty"`

	// phase is the present step. Those of an upgrade are Preflight, Snapshot, Etcd, Server, Verification,
	// StorageMigration, in this order, or Rollback when the servers go back to the
	// release before.
	// +required
	Phase OperationPhase `json:"phase"`

	// phaseStartedTime is when the phase began.
	// +required
	PhaseStartedTime metav1.Time `json:"phaseStartedTime"`

	// progress is the phase and how far it is, in short, such as "Etcd 2/3".
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Progress of the operation"
	Progress string `json:"progress,omitempty"`

	// phaseCompleted is true when the phase is done and spec.paused holds the next
	// one back.
	// +optional
	PhaseCompleted bool `json:"phaseCompleted,omitempty"`

	// failingSince is since when the new servers fail the verification. It is not set
	// while they pass it, or while something else is at fault.
	// +optional
	FailingSince *metav1.Time `json:"failingSince,omitempty"`

	// snapshot is the name of the snapshot of etcd that is taken beforehand.
	// +optional
	Snapshot string `json:"snapshot,omitempty"`

	// message is why the servers go back.
	// +optional
	Message string `json:"message,omitempty"`
}

// OperationType is a kind of operation.
//
// +kubebuilder:validation:Enum=Upgrade
type OperationType string

// OperationUpgrade brings a registry to another release.
const OperationUpgrade OperationType = "Upgrade"

// OperationPhase is a step of an operation.
//
// +kubebuilder:validation:Enum=Preflight;Snapshot;Etcd;Server;Verification;StorageMigration;Rollback
type OperationPhase string

// The phases of an upgrade, in their order.
const (
	// PhasePreflight waits until all that runs is as wanted. Nothing is touched.
	PhasePreflight OperationPhase = "Preflight"
	// PhaseSnapshot saves etcd, and proves the snapshot by restoring it.
	PhaseSnapshot OperationPhase = "Snapshot"
	// PhaseEtcd replaces members one at a time, the leader last.
	PhaseEtcd OperationPhase = "Etcd"
	// PhaseServer replaces the servers, each only when its successor serves.
	PhaseServer OperationPhase = "Server"
	// PhaseVerification uses the new servers as clients do.
	PhaseVerification OperationPhase = "Verification"
	// PhaseStorageMigration rewrites what is stored in an older version of the API.
	PhaseStorageMigration OperationPhase = "StorageMigration"
	// PhaseRollback brings the servers back to the release before.
	PhaseRollback OperationPhase = "Rollback"
)

// Transition is an installation or an upgrade.
type Transition struct {
	// version is the release that it led to.
	// +required
	Version string `json:"version"`

	// state is Progressing, Completed, Abandoned when another version was wanted
	// before it was complete, or RolledBack when it failed and the servers went
	// back to the release before.
	// +required
	// +kubebuilder:validation:Enum=Progressing;Completed;Abandoned;RolledBack
	State TransitionState `json:"state"`

	// startTime is when it began.
	// +required
	StartTime metav1.Time `json:"startTime"`

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

	// message says what is to be known besides: why it was rolled back, or why
	// there is no snapshot.
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

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Recovery approves with which copy of the data etcd continues after one loss: of its quorum, or
// of what it had acknowledged before it went back. What that copy lacks is lost.
type Recovery struct {
	// from is Member to continue with the data of a member that is left, or Backup to continue
	// with a backup of the registry.
	// +required
	// +kubebuilder:validation:Enum=Member;Backup
	From RecoverySource `json:"from"`

	// name is the name of the member, such as fleet-etcd-1, or the host and port of a member of
	// an external etcd, or the name of the ClusterRegistryBackup in the namespace of the
	// registry.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`

	// acceptDataLossUpTo is how many revisions of etcd, of those that the operator knows of, may
	// be lost at most: revisionsLost of that copy in status.recovery says how many it lacks.
	// Each write is one revision. Newer ones that the operator does not know of are lost as
	// well. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AcceptDataLossUpTo int64 `json:"acceptDataLossUpTo,omitempty"`

	// approvedFor is the ID of the loss that is approved, which status.recovery.id has. An
	// approval for another loss does nothing.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ApprovedFor string `json:"approvedFor"`
}

// RecoverySource is a kind of copy of the data.
type RecoverySource string

const (
	// RecoverFromMember continues with the data of a member that is left.
	RecoverFromMember RecoverySource = "Member"
	// RecoverFromBackup continues with a backup.
	RecoverFromBackup RecoverySource = "Backup"
)

// RecoveryPhase is a step of a recovery.
type RecoveryPhase string

// The phases of a recovery, in their order.
const (
	// RecoveryStopping waits until no server and no etcd member runs any more.
	RecoveryStopping RecoveryPhase = "Stopping"
	// RecoveryRestoring makes a new etcd with one member of the copy that was approved.
	RecoveryRestoring RecoveryPhase = "Restoring"
)

// RecoveryStatus is an etcd of which a person has to decide with which copy of the data it
// continues. Either it has lost its quorum for good: so many of its members have lost their data
// that the others can't agree on anything any more, or its only member has. Or it went back: it
// serves, without what it had acknowledged, as after volumes were set back to older copies. It
// says what is left, and how much each copy of the data lacks.
type RecoveryStatus struct {
	// id identifies this loss. Another one has another ID.
	// +required
	ID string `json:"id"`

	// lostTime is when the loss was noticed.
	// +required
	LostTime metav1.Time `json:"lostTime"`

	// lastRevision is the newest revision of etcd that the operator knows of. Clients may
	// have been answered newer ones.
	// +optional
	LastRevision int64 `json:"lastRevision,omitempty"`

	// members are those of the etcd, by name. One that serves an etcd that went back has the
	// revision that it went back to.
	// +optional
	// +listType=map
	// +listMapKey=name
	Members []RecoveryMember `json:"members,omitempty"`

	// backup is the newest backup that was verified. It is not set when there is none.
	// +optional
	Backup *RecoveryBackup `json:"backup,omitempty"`

	// phase is the present step of the recovery that was approved: Stopping waits until no
	// server and no etcd member runs any more, and Restoring makes a new etcd with one member
	// of the copy that was approved. It is not set before.
	// +optional
	Phase RecoveryPhase `json:"phase,omitempty"`

	// message says what the recovery waits for, or why the approval in spec.recovery does
	// nothing.
	// +optional
	Message string `json:"message,omitempty"`
}

// RecoveredStatus says with which copy etcd began again after it had lost its quorum, or gone
// back, the last time.
type RecoveredStatus struct {
	// id identifies the loss.
	// +required
	ID string `json:"id"`

	// from is Member where the data continues with that of a member, or Backup.
	// +required
	From RecoverySource `json:"from"`

	// name is the name of the member or of the ClusterRegistryBackup.
	// +required
	Name string `json:"name"`

	// lostTime is when the loss was noticed.
	// +required
	LostTime metav1.Time `json:"lostTime"`

	// lastRevision is the newest revision of etcd that was known when the recovery was
	// approved. Clients may have been answered newer ones.
	// +optional
	LastRevision int64 `json:"lastRevision,omitempty"`

	// revision is the revision with which the copy ended, as far as that is known: what was
	// written later is lost. The recovered etcd begins 1,000,000,000 above it, so that no
	// client sees a revision twice.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// lineage is the ID of the data from then on, under which its backups are.
	// +optional
	Lineage string `json:"lineage,omitempty"`

	// completionTime is when etcd served the recovered data.
	// +required
	CompletionTime metav1.Time `json:"completionTime"`
}

// RecoveryMember is a member of an etcd that lost its quorum, or went back.
type RecoveryMember struct {
	// name is the name of the member.
	// +required
	Name string `json:"name"`

	// dataGone is true when the data of the member is certainly gone.
	// +optional
	DataGone bool `json:"dataGone,omitempty"`

	// revision is the newest revision of etcd that the member has applied. It is not set
	// when that is not known: without a quorum, etcd says it only until it is restarted, and a
	// member that does not serve an etcd that went back may have what is missing.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// revisionsLost is how many of the revisions that the operator knows of the member
	// lacks. It is not set when that is not known, or it lacks none of them.
	// +optional
	RevisionsLost int64 `json:"revisionsLost,omitempty"`

	// corrupt is true when etcd's alarm CORRUPT names the member, or could not say which member
	// holds other data than the rest: its data may be wrong, and etcd does not continue with it.
	// +optional
	Corrupt bool `json:"corrupt,omitempty"`

	// message says why the data of the member is gone, or else what is known of it.
	// +optional
	Message string `json:"message,omitempty"`
}

// RecoveryBackup is a backup of an etcd that lost its quorum, or went back.
type RecoveryBackup struct {
	// name is the name of the backup, in the store and of the ClusterRegistryBackup.
	// +required
	Name string `json:"name"`

	// time is when it was taken.
	// +required
	Time metav1.Time `json:"time"`

	// revision is etcd's revision that it holds.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// revisionsLost is how many of the revisions that the operator knows of it lacks. It is
	// not set when it lacks none of them.
	// +optional
	RevisionsLost int64 `json:"revisionsLost,omitempty"`

	// location is where it is.
	// +optional
	Location string `json:"location,omitempty"`
}

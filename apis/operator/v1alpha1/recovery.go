package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RecoveryStatus is an etcd that has lost its quorum for good: so many of its members have
// lost their data that the others can't agree on anything any more. It says what is left, and
// how much each copy of the data lacks.
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

	// members are those of the etcd that lost its quorum, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Members []RecoveryMember `json:"members,omitempty"`

	// backup is the newest backup that was verified. It is not set when there is none.
	// +optional
	Backup *RecoveryBackup `json:"backup,omitempty"`
}

// RecoveryMember is a member of an etcd that lost its quorum.
type RecoveryMember struct {
	// name is the name of the member.
	// +required
	Name string `json:"name"`

	// dataGone is true when the data of the member is certainly gone.
	// +optional
	DataGone bool `json:"dataGone,omitempty"`

	// revision is the newest revision of etcd that the member has applied. It is not set
	// when that is not known: without a quorum, etcd says it only until it is restarted.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// revisionsLost is how many of the revisions that the operator knows of the member
	// lacks. It is not set when that is not known, or it lacks none of them.
	// +optional
	RevisionsLost int64 `json:"revisionsLost,omitempty"`

	// message says why the data of the member is gone, or else what is known of it.
	// +optional
	Message string `json:"message,omitempty"`
}

// RecoveryBackup is a backup of an etcd that lost its quorum.
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

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultStorageSize is the size of a member's volume when the spec names none.
const DefaultStorageSize = "8Gi"

// DefaultReplaceAfter is how long a lost member is waited for when the spec does not say
// it.
const DefaultReplaceAfter = 5 * time.Minute

// Etcd is where a registry's data is.
//
// +kubebuilder:validation:XValidation:rule="has(self.external) || has(self.replicas)",message="say how many members etcd has (replicas: 1, 3 or 5), or name an external etcd"
// +kubebuilder:validation:XValidation:rule="!has(self.external) || !(has(self.replicas) || has(self.storage) || has(self.resources) || has(self.podLabels) || has(self.podAnnotations) || has(self.nodeSelector) || has(self.affinity) || has(self.tolerations) || has(self.topologySpreadConstraints) || has(self.priorityClassName) || has(self.runtimeClassName) || has(self.dnsConfig) || has(self.podSecurityContext) || has(self.heartbeatIntervalMilliseconds) || has(self.electionTimeoutMilliseconds) || has(self.maintenanceWindow) || has(self.replaceAfter))",message="the operator does not run an external etcd: remove external, or all else of etcd"
// +kubebuilder:validation:XValidation:rule="!has(self.electionTimeoutMilliseconds) || self.electionTimeoutMilliseconds >= 5 * (has(self.heartbeatIntervalMilliseconds) ? self.heartbeatIntervalMilliseconds : 100)",fieldPath=".electionTimeoutMilliseconds",message="etcd takes an election timeout of at least five heartbeat intervals: raise electionTimeoutMilliseconds, or lower heartbeatIntervalMilliseconds"
// +kubebuilder:validation:XValidation:rule="has(self.external) == has(oldSelf.external)",message="a registry can't be moved between an etcd of its own and an external one: create another registry and copy the clusters"
type Etcd struct {
	// replicas is how many members etcd has: 1, 3 or 5. With 3, one may fail;
	// with 5, two; with 1, none, and an upgrade interrupts the service. When it changes,
	// members are added or removed one at a time, while the registry serves. Before etcd
	// goes down to one member, a snapshot is taken. Required without external.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self in [1, 3, 5]",message="etcd has 1, 3 or 5 members: an even number survives no more failures than one less"
	// +operator-sdk:csv:customresourcedefinitions:displayName="etcd's members",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:1","urn:alm:descriptor:com.tectonic.ui:select:3","urn:alm:descriptor:com.tectonic.ui:select:5"}
	Replicas int32 `json:"replicas,omitempty"`

	// storage is the volume of each member. Default: 8Gi of the cluster's default
	// StorageClass.
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// resources are the requests and limits of each member. Default: enough for 100,000
	// clusters.
	// +optional
	Resources Resources `json:"resources,omitempty,omitzero"`

	Pods `json:",inline"`

	// maintenanceWindow is when etcd members may be defragmented. A single member is
	// defragmented only then, since the registry is unavailable during that. Default: with three
	// or five members at any time, with a single one never.
	// +optional
	MaintenanceWindow *MaintenanceWindow `json:"maintenanceWindow,omitempty"`

	// replaceAfter is how long after the data of a member is certainly gone a new member
	// replaces it: the volume was lost, emptied or damaged, or its node was deleted. A majority
	// of the members must be ready. From 0s, which means never, to 24h; "kubectl registry etcd
	// replace" replaces a member at any time. Default: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) <= duration('24h')",message="write how long a lost member is waited for in hours, minutes or seconds, at most 24h, such as 5m; 0s means that only a person replaces members"
	ReplaceAfter *metav1.Duration `json:"replaceAfter,omitempty"`

	// heartbeatIntervalMilliseconds is the time between two heartbeats of the leader, 50 to
	// 5000. If members are far apart, raise it to the longest time that a message takes between
	// two of them. Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=50
	// +kubebuilder:validation:Maximum=5000
	HeartbeatIntervalMilliseconds int32 `json:"heartbeatIntervalMilliseconds,omitempty"`

	// electionTimeoutMilliseconds is how long a member hears nothing from the leader before it
	// starts an election, 500 to 50000, and at least five heartbeat intervals. Raise it if disks
	// or the network are so slow that leaders change while nothing fails; after a failure,
	// writes wait that long. Default: 1000, or ten heartbeat intervals.
	// +optional
	// +kubebuilder:validation:Minimum=500
	// +kubebuilder:validation:Maximum=50000
	ElectionTimeoutMilliseconds int32 `json:"electionTimeoutMilliseconds,omitempty"`

	// external is an etcd that the operator does not manage. Default: none, and the operator runs
	// the members that replicas says.
	// +optional
	External *ExternalEtcd `json:"external,omitempty"`
}

// MaintenanceWindow is a time that recurs, in which the operator may do what can wait for it.
type MaintenanceWindow struct {
	// schedule is when the window opens, in the five fields of cron: minute, hour, day of
	// the month, month and day of the week (0 or sun is Sunday). A time that the clocks
	// skip opens none, and one that they repeat opens two.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[1-9][0-9]?)?(,([*]|[0-5]?[0-9](-[0-5]?[0-9])?)(/[1-9][0-9]?)?)* ([*]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?(,([*]|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?)* ([*]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?(,([*]|(0?[1-9]|[12][0-9]|3[01])(-(0?[1-9]|[12][0-9]|3[01]))?)(/[1-9][0-9]?)?)* ([*]|(0?[1-9]|1[0-2]|[A-Za-z]{3})(-(0?[1-9]|1[0-2]|[A-Za-z]{3}))?)(/[1-9][0-9]?)?(,([*]|(0?[1-9]|1[0-2]|[A-Za-z]{3})(-(0?[1-9]|1[0-2]|[A-Za-z]{3}))?)(/[1-9][0-9]?)?)* ([*]|([0-6]|[A-Za-z]{3})(-([0-6]|[A-Za-z]{3}))?)(/[1-9][0-9]?)?(,([*]|([0-6]|[A-Za-z]{3})(-([0-6]|[A-Za-z]{3}))?)(/[1-9][0-9]?)?)*$')",message="write five fields with one space between two of them: minute, hour, day of the month, month and day of the week, such as 0 2 * * sat, without a time zone, which is timeZone"
	// +operator-sdk:csv:customresourcedefinitions:displayName="When etcd's maintenance window opens",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Schedule string `json:"schedule"`

	// duration is how long the window is open, from 5m to 168h (a week). What was started in it
	// is completed after it. Overlapping windows are one.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('5m') && duration(self) <= duration('168h')",message="write how long the window is open in hours, minutes or seconds, from 5m to 168h (a week), such as 2h"
	Duration metav1.Duration `json:"duration"`

	// timeZone is the time zone of schedule, by its name in the IANA database, such as
	// Europe/Berlin. Default: UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$') && self.lowerAscii() != 'local'",message="write the name of a time zone in the IANA database, such as Europe/Berlin or UTC"
	TimeZone string `json:"timeZone,omitempty"`
}

// Storage is the volume of an etcd member.
type Storage struct {
	// size is the volume's size, at least 256Mi; etcd may fill half of it. It can grow if the
	// StorageClass allows expansion. The quota follows, and members are replaced one at a time:
	// a single member interrupts the service. Default: 8Gi.
	// +optional
	// +kubebuilder:default="8Gi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('256Mi')) >= 0",message="the size of a volume is a quantity of at least 256Mi, such as 8Gi: etcd may fill half of it, and its log alone takes 128 MB"
	// +operator-sdk:csv:customresourcedefinitions:displayName="Size of each member's volume",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Size resource.Quantity `json:"size,omitempty,omitzero"`

	// storageClassName is the volume's StorageClass; etcd wants a fast disk. When it changes,
	// members with volumes of another class are replaced one at a time by members with new
	// volumes, which needs three or five members. Default: the cluster's default class for new
	// volumes; others keep theirs.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`
}

// ExternalEtcd is an etcd that is run elsewhere, which the operator does not manage.
type ExternalEtcd struct {
	// endpoints are the https URLs of all members, with ports, so that the servers continue when
	// one fails. At most 9.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	Endpoints []EtcdEndpoint `json:"endpoints"`

	// tlsSecretRef names a Secret with the etcd client certificate and key (tls.crt,
	// tls.key) and the CA certificates that sign the certificates of etcd (ca.crt).
	// +required
	TLSSecretRef LocalObjectReference `json:"tlsSecretRef"`
}

// EtcdEndpoint is the URL of an etcd member.
//
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https://[^/?#@]+:[0-9]{1,5}/?$')",message="write an https URL with a port and without a path, such as https://etcd-0.example:2379"
type EtcdEndpoint string

package v1alpha1

// Types of conditions. One that is not set counts as Unknown.
const (
	// ConditionVersionSupported is true when this operator can run spec.version
	// on this host, and get there from what runs.
	ConditionVersionSupported = "VersionSupported"
	// ConditionCertificatesReady is true when all certificates are issued and valid.
	ConditionCertificatesReady = "CertificatesReady"
	// ConditionEtcdReady is true when every etcd member is ready.
	ConditionEtcdReady = "EtcdReady"
	// ConditionServerReady is true when all API servers of the wanted kind serve.
	ConditionServerReady = "ServerReady"
	// ConditionAPIServiceReady is true when the host serves the registry's API.
	// Aggregated mode only.
	ConditionAPIServiceReady = "APIServiceReady"
	// ConditionEndpointReady is true when the registry has an address that its
	// certificate is valid for. Independent mode only.
	ConditionEndpointReady = "EndpointReady"
	// ConditionControllerReady is true when every function of spec.controllers runs. It
	// is there only while one is set.
	ConditionControllerReady = "ControllerReady"
	// ConditionBackupReady is true when the last backup succeeded and none is overdue. It is set
	// only while spec.backup is.
	ConditionBackupReady = "BackupReady"
	// ConditionProgressing is true while the operator changes something.
	ConditionProgressing = "Progressing"
	// ConditionAvailable is true while clients are served: a read succeeds, through the
	// host or at the registry's Service. It stays true in an upgrade, and while a
	// member or a server is down, as long as the others serve.
	ConditionAvailable = "Available"
	// ConditionReady sums the others up: true when the registry is as its spec says.
	ConditionReady = "Ready"
)

// Reasons that conditions of several types have.
const (
	// ReasonReady is the reason of a part that is up to date and available.
	ReasonReady = "Ready"
	// ReasonWaiting is the reason of a part whose turn has not come: the message
	// names the part before it.
	ReasonWaiting = "Waiting"
	// ReasonProgressing is the reason of a part that is being changed: the message
	// names the object that is awaited.
	ReasonProgressing = "Progressing"
	// ReasonUpToDate is the reason of nothing to change.
	ReasonUpToDate = "UpToDate"
	// ReasonPaused is the reason of a registry with spec.paused.
	ReasonPaused = "Paused"
	// ReasonDeleting is the reason of a registry that is being deleted.
	ReasonDeleting = "Deleting"
	// ReasonInternalError is the reason of a part that the operator failed to read or
	// change: the message has the error, and the operator tries again.
	ReasonInternalError = "InternalError"
	// ReasonHostRefused is the reason of a part of which the host cluster refuses an object, by a
	// policy, a webhook or a quota, or a request for which the operator lacks a right: the message
	// has the host cluster's words, and the operator tries again.
	ReasonHostRefused = "HostRefused"
	// ReasonUndecodable is the reason of an object that the host cluster stores and the
	// operator can't decode: the message names the field.
	ReasonUndecodable = "Undecodable"
	// ReasonOOMKilled is the reason of a part with a container that was killed at
	// its limit of memory, and of one that serves again since then: the message names
	// the container, and the field to raise.
	ReasonOOMKilled = "OOMKilled"
	// ReasonNotOwned is the reason of a part that needs an object whose name
	// is taken by someone else's: the message names it.
	ReasonNotOwned = "NotOwned"
)

// Reasons of Available, beside NotAvailable.
const (
	// ReasonAvailable is the reason of a registry whose clients are served.
	ReasonAvailable = "Available"
)

// Reasons of VersionSupported.
const (
	// ReasonSupported is the reason of a version that can run.
	ReasonSupported = "Supported"
	// ReasonVersionUnknown is the reason of a version that this operator does not know.
	ReasonVersionUnknown = "VersionUnknown"
	// ReasonVersionUnsupported is the reason of a release that is older than the last
	// three minor releases: it is not installed, and one that runs is to be upgraded.
	ReasonVersionUnsupported = "VersionUnsupported"
	// ReasonHostUnsupported is the reason of a host whose version the release was
	// never tested with.
	ReasonHostUnsupported = "HostUnsupported"
	// ReasonOperationInProgress is the reason of an upgrade that waits for another operation.
	ReasonOperationInProgress = "OperationInProgress"
	// ReasonUpgradeInProgress is the reason of a version that has to wait until the
	// upgrade to another one is done.
	ReasonUpgradeInProgress = "UpgradeInProgress"
	// ReasonRolledBack is the reason of a version that the registry was brought to
	// and returned from: the message says why. It is not tried again until the spec
	// changes.
	ReasonRolledBack = "RolledBack"
	// ReasonUpgradeUnsupported is the reason of a version that can't be reached
	// from the one that runs.
	ReasonUpgradeUnsupported = "UpgradeUnsupported"
)

// Reasons of Progressing in an upgrade, beside those of the phases themselves.
const (
	// ReasonUpgradeBlocked is the reason of an upgrade that can't continue and can't go
	// back: the message says what a person can do.
	ReasonUpgradeBlocked = "UpgradeBlocked"
	// ReasonSnapshotFailed is the reason of an upgrade that has not begun, since
	// etcd could not be saved before.
	ReasonSnapshotFailed = "SnapshotFailed"
)

// Reasons of CertificatesReady.
const (
	// ReasonCertManagerNotInstalled is the reason of a host without cert-manager.
	ReasonCertManagerNotInstalled = "CertManagerNotInstalled"
	// ReasonCertificateNotReady is the reason of a Certificate that is not issued:
	// the message has its name and what cert-manager says.
	ReasonCertificateNotReady = "CertificateNotReady"
	// ReasonCAExpiring is the reason of a CA that expires within a year.
	ReasonCAExpiring = "CAExpiring"
	// ReasonShortLifetime is the reason of a certificate that the issuer gives a shorter
	// lifetime than was asked for.
	ReasonShortLifetime = "ShortLifetime"
	// ReasonCAMissing is the reason of a CA whose Secret is missing or holds no
	// certificate: the message names it.
	ReasonCAMissing = "CAMissing"
	// ReasonCAReplaced is the reason of a CA that has replaced another one, as
	// after its Secret was deleted: both are published for a time.
	ReasonCAReplaced = "CAReplaced"
	// ReasonCAMismatch is the reason of a spec.tls.caBundle that does not belong to
	// the issuer in spec.tls.issuerRef.
	ReasonCAMismatch = "CAMismatch"
	// ReasonRotationPending is the reason of certificates that are ready, and of a CA that
	// spec.tls.rotation asks to replace and that is not replaced at the moment: the message
	// says what that waits for.
	ReasonRotationPending = "RotationPending"
	// ReasonDropPending is the reason of certificates that are ready, and of a CA that was
	// replaced by spec.tls.rotation, whose predecessor is trusted until
	// spec.tls.rotation.drop names it.
	ReasonDropPending = "DropPending"
)

// Reasons of EtcdReady.
const (
	// ReasonMembersNotReady is the reason of an etcd with members that don't serve.
	ReasonMembersNotReady = "MembersNotReady"
	// ReasonDataLost is the reason of an etcd that is empty where data was before.
	ReasonDataLost = "DataLost"
	// ReasonQuorumLost is the reason of an etcd so many of whose members have lost their data
	// for good that the others can't agree on anything any more, or whose only member has: the
	// message says what is left, as status.recovery does.
	ReasonQuorumLost = "QuorumLost"
	// ReasonClaimTerminating is the reason of an etcd with a member whose claim was deleted: the
	// data of that goes with the member's pod, unless its volume is kept. The message says what
	// to do before.
	ReasonClaimTerminating = "ClaimTerminating"
	// ReasonWentBack is the reason of an etcd that was found at an older revision than it was
	// known to have been at, or without what the operator wrote into it last, as after volumes
	// were set back to older copies: nothing is changed until a person decides. The message says
	// by how much, and status.recovery what each member has.
	ReasonWentBack = "WentBack"
	// ReasonIdentityMismatch is the reason of an etcd or a CA that is not the one
	// that was recorded.
	ReasonIdentityMismatch = "IdentityMismatch"
	// ReasonNoSpace is the reason of an etcd that refuses all writes, since it was full
	// and its alarm NOSPACE was not disarmed.
	ReasonNoSpace = "NoSpace"
	// ReasonCorrupt is the reason of an etcd that refuses all writes, since its members
	// hold different data.
	ReasonCorrupt = "Corrupt"
	// ReasonMembershipDiffers is the reason of an etcd whose own list of members is
	// not the recorded one.
	ReasonMembershipDiffers = "MembershipDiffers"
	// ReasonMembersChanging is the reason of an etcd whose members are being added, removed
	// or replaced: the message says which, and what that waits for.
	ReasonMembersChanging = "MembersChanging"
	// ReasonMembersBlocked is the reason of a change of etcd's members that can't proceed
	// before a person has done what the message says.
	ReasonMembersBlocked = "MembersBlocked"
	// ReasonMembersShareNode is the reason of an etcd that is ready, and of which a node that
	// fails takes several members: the message names them, and how to move one.
	ReasonMembersShareNode = "MembersShareNode"
	// ReasonReplicasDiffer is the reason of a number of members that is not that of
	// the etcd that exists.
	ReasonReplicasDiffer = "ReplicasDiffer"
	// ReasonVolumesDiffer is the reason of an etcd that is ready on claims that are
	// smaller than the spec asks for and can't grow, or of another class, such as those
	// that an earlier registry of the name has left: the message names them.
	ReasonVolumesDiffer = "VolumesDiffer"
	// ReasonVolumesGrowing is the reason of an etcd that is ready, and whose volumes are
	// being expanded to what the spec asks for: the message says how far that is.
	ReasonVolumesGrowing = "VolumesGrowing"
	// ReasonDefragmentationPending is the reason of an etcd that is ready, and has members
	// to defragment that wait for spec.etcd.maintenanceWindow or, where a person has asked
	// for that, until the registry is ready: the message says what is waited for.
	ReasonDefragmentationPending = "DefragmentationPending"
	// ReasonDefragmentationRequestInvalid is the reason of an etcd that is ready, and of an
	// annotation operator.clusterregistry.io/defragment that can't be understood or names no
	// member: the message says why.
	ReasonDefragmentationRequestInvalid = "DefragmentationRequestInvalid"
	// ReasonMaintenanceWindowInvalid is the reason of an etcd that is ready, and of a
	// spec.etcd.maintenanceWindow that never opens: the message says why.
	ReasonMaintenanceWindowInvalid = "MaintenanceWindowInvalid"
	// ReasonStorageNearlyFull is the reason of an external etcd that is ready, and whose data
	// has reached 80% of its quota.
	ReasonStorageNearlyFull = "StorageNearlyFull"
	// ReasonEtcdVersionUnsupported is the reason of an external etcd that is ready, and has
	// members of a version that is older than servers need.
	ReasonEtcdVersionUnsupported = "EtcdVersionUnsupported"
	// ReasonSecretInvalid is the reason of a Secret of the user's that is missing
	// or lacks a key.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonRestoreRefused is the reason of a spec.restoreFrom that can't be fulfilled as it is:
	// nothing is made, and the message says what to do.
	ReasonRestoreRefused = "RestoreRefused"
	// ReasonRestorePending is the reason of a backup that is looked up, or can't be reached,
	// before anything is made of it: the message says what is awaited.
	ReasonRestorePending = "RestorePending"
	// ReasonRestoring is the reason of an etcd whose first member is being restored.
	ReasonRestoring = "Restoring"
	// ReasonRecovering is the reason of an etcd that begins again with the copy of the data that
	// spec.recovery approves, after it lost its quorum or went back: the message says what that
	// waits for.
	ReasonRecovering = "Recovering"
	// ReasonEtcdTaken is the reason of an external etcd that belongs to another registry: the
	// message names it.
	ReasonEtcdTaken = "EtcdTaken"
	// ReasonExternalUnreachable is the reason of an external etcd that does not answer.
	ReasonExternalUnreachable = "ExternalUnreachable"
)

// Reasons of ServerReady.
const (
	// ReasonReplicasNotReady is the reason of API servers that don't serve yet.
	ReasonReplicasNotReady = "ReplicasNotReady"
	// ReasonEncryptionInvalid is the reason of a spec.server.encryption whose Secret is
	// missing or would be refused by the servers, and of keys in use whose copy is missing:
	// the message says what is wrong, and names keys, never what they are.
	ReasonEncryptionInvalid = "EncryptionInvalid"
	// ReasonEncryptionPending is the reason of servers that are ready, and of keys that are
	// not yet as desired: the message says what that waits for.
	ReasonEncryptionPending = "EncryptionPending"
	// ReasonAuditInvalid is the reason of a spec.server.audit whose policy, Secret or claim
	// is missing or would be refused by the servers: the message says what is wrong, and
	// what the servers do meanwhile.
	ReasonAuditInvalid = "AuditInvalid"
	// ReasonVisibilityNotApproved is the reason of servers that are ready, and keep hiding
	// clusters that the spec no longer hides: the message says how to approve it.
	ReasonVisibilityNotApproved = "VisibilityNotApproved"
)

// Reasons of APIServiceReady.
const (
	// ReasonAggregationNotAllowed is the reason of a registry that would be a part
	// of the host's API from a namespace where no administrator of the cluster has
	// allowed that: the message says how to.
	ReasonAggregationNotAllowed = "AggregationNotAllowed"
	// ReasonGroupTaken is the reason of an API group that the host serves from a
	// CRD or another registry: the message names it.
	ReasonGroupTaken = "GroupTaken"
	// ReasonNotAvailable is the reason of an API that the host does not serve yet,
	// or not at the moment, and of a registry whose clients are not served.
	ReasonNotAvailable = "NotAvailable"
	// ReasonBackendDown is the reason of an API that the host has not reached for a minute.
	// The message says whether it is still registered: then deletions of namespaces in the host
	// hang.
	ReasonBackendDown = "BackendDown"
)

// Reasons of EndpointReady.
const (
	// ReasonAddressPending is the reason of a Service that has no address yet.
	ReasonAddressPending = "AddressPending"
	// ReasonNodePortRefused is the reason of a Service whose node port the host
	// cluster refuses, most often since another Service has it.
	ReasonNodePortRefused = "NodePortRefused"
	// ReasonAddressSilent is the reason of an address that clients are given and that has
	// answered the operator, and does not for a minute.
	ReasonAddressSilent = "AddressSilent"
	// ReasonAddressChanged is the reason of the event of a registry that clients
	// reach elsewhere than before.
	ReasonAddressChanged = "AddressChanged"
)

// Reasons of ControllerReady, beside ReasonReplicasNotReady.
const (
	// ReasonStarting is the reason of a function that waits for what it needs, and of a
	// controller of which no replica leads or reports yet.
	ReasonStarting = "Starting"
	// ReasonIsolated is the reason of health that reaches so few clusters that it turns no
	// condition of a cluster False: most likely the outage is on its side.
	ReasonIsolated = "Isolated"
	// ReasonRefused is the reason of a function that may not do what the spec asks for:
	// the message says what a person has to resolve.
	ReasonRefused = "Refused"
	// ReasonFailing is the reason of a function that fails and tries again: the message
	// has the error.
	ReasonFailing = "Failing"
	// ReasonObjectsHeld is the reason of functions that run, one of which holds objects, such
	// as one with a name that is taken, for a person to resolve: the message names them. Whoever
	// may make such an object can't make the registry not Ready by it.
	ReasonObjectsHeld = "ObjectsHeld"
	// ReasonRangesUnknown is the reason of functions that run, and that entries may lead to
	// pods of the host cluster, whose ranges are in no field and can't be read.
	ReasonRangesUnknown = "RangesUnknown"
	// ReasonLeaderLost is the reason of a controller whose leader no longer renews its
	// Lease, while no other replica has taken over.
	ReasonLeaderLost = "LeaderLost"
	// ReasonReportInvalid is the reason of a controller whose report in its Lease can't be
	// understood.
	ReasonReportInvalid = "ReportInvalid"
	// ReasonRightsMissing is the reason of a controller that lacks rights in the host
	// cluster: the message has the command by which an administrator grants them.
	ReasonRightsMissing = "RightsMissing"
	// ReasonNamespaceNotAllowed is the reason of a controller in a namespace where others
	// elect leaders by Leases: kube-system, or the operator's own.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
)

// Reasons of BackupReady.
const (
	// ReasonBackedUp is the reason of a registry whose last backup succeeded.
	ReasonBackedUp = "BackedUp"
	// ReasonBackupsNotRemoved is the reason of a registry whose last backup succeeded, and whose
	// old ones can't be removed from the store: the message says since when, and why.
	ReasonBackupsNotRemoved = "BackupsNotRemoved"
	// ReasonFirstBackupPending is the reason of a registry of which no backup was due yet, or
	// the first one is being taken.
	ReasonFirstBackupPending = "FirstBackupPending"
	// ReasonBackupFailed is the reason of a last backup that failed: the message says why.
	ReasonBackupFailed = "BackupFailed"
	// ReasonStoreUnreachable is the reason of a store that can't be reached: the message says
	// since when, and when the operator tries again.
	ReasonStoreUnreachable = "StoreUnreachable"
	// ReasonBackupOverdue is the reason of a registry without a backup that succeeded for two
	// periods of its schedule.
	ReasonBackupOverdue = "BackupOverdue"
	// ReasonVerificationFailed is the reason of a last backup that is in its store, and is
	// damaged or could not be verified: the message says why.
	ReasonVerificationFailed = "VerificationFailed"
	// ReasonBackupSuspended is the reason of spec.backup.suspend.
	ReasonBackupSuspended = "BackupSuspended"
	// ReasonStoreSecretMissing is the reason of a Secret, ServiceAccount or
	// PersistentVolumeClaim of spec.backup.store that does not exist, or of a claim there that
	// is a volume of the registry itself: the message names it.
	ReasonStoreSecretMissing = "StoreSecretMissing"
	// ReasonScheduleInvalid is the reason of a spec.backup.schedule that names no time: the
	// message says why.
	ReasonScheduleInvalid = "ScheduleInvalid"
	// ReasonBackupUnsupported is the reason of an etcd that can't be backed up: it is
	// external.
	ReasonBackupUnsupported = "BackupUnsupported"
	// ReasonBackupsUnreadable is the reason of ClusterRegistryBackups that the operator can't
	// read: it was upgraded before its CustomResourceDefinitions or its rights.
	ReasonBackupsUnreadable = "BackupsUnreadable"
)

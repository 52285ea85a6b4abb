package v1beta1

// The conditions of a Cluster that more than one program sets or reads.
const (
	// ConditionAvailable says whether clients can use the cluster.
	ConditionAvailable = "Available"
	// ConditionReachable says whether the cluster's API server answers at all.
	ConditionReachable = "Reachable"
	// ConditionControlPlaneHealthy says whether the cluster's API server is ready.
	ConditionControlPlaneHealthy = "ControlPlaneHealthy"
	// ConditionIdentityVerified says whether the UID of the cluster's namespace kube-system
	// was read from it and is spec.id.
	ConditionIdentityVerified = "IdentityVerified"
	// ConditionJoined says whether what the entry was made from, such as a Cluster of
	// Cluster API, is still there and chosen for the registry.
	ConditionJoined = "Joined"
)

package contract

// The names under which the functions of a controller report of clusters: of their entries
// in status.reporters, and of the field managers by which they apply to the status.
const (
	HealthReporter       = "clusterregistry-controller-health"
	RegisterHostReporter = "clusterregistry-controller-host"
	// ClusterAPIReporter is also spec.manager.name of the entries that the function makes.
	ClusterAPIReporter = "clusterregistry-controller-cluster-api"
)

// ExpiryProperty is the property of a cluster's status with the end of the certificate that its
// API server shows, in RFC 3339.
const ExpiryProperty = "clusterregistry.k8s.io/serving-certificate-expires"

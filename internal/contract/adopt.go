package contract

// The annotations of an entry by which the controller gives it to another object of
// Cluster API, and writes its sourceRef and endpoints with its own rights. So the server
// lets only those write them who may write these fields themselves.
const (
	// AdoptAnnotation is the UID of the Cluster that an entry is for from now on.
	AdoptAnnotation = "clusterregistry.k8s.io/adopt"
	// KeepAnnotation says why an entry is kept although its Cluster is gone, such as
	// [KeptMoved]. While it is there, the entry is not deleted.
	KeepAnnotation = "clusterregistry.k8s.io/keep"
	// KeptMoved is what KeepAnnotation says of an entry that follows a Cluster of the
	// same name once that is back. Other reasons give the entry to no one.
	KeptMoved = "Moved"
)

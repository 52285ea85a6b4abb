package contract

import "time"

// ControllerStatusAnnotation is on the Lease of a registry's controller: a
// ControllerStatus in JSON, by which the leader tells the operator how its functions
// are. It counts while its holder is the one in the Lease's spec, and that is renewed.
const ControllerStatusAnnotation = "clusterregistry.k8s.io/controller-status"

// FeedAnsweredAnnotation is on that Lease, too: what the feed has last answered, or FeedAccept, by which
// a person says that clusters, or addresses, may leave its answers.
const (
	FeedAnsweredAnnotation = "clusterregistry.k8s.io/controller-feed"
	FeedAccept             = "accept"
)

// ControllerStatus is how the functions of a controller are.
type ControllerStatus struct {
	// Holder is who says so, as in spec.holderIdentity of the Lease.
	Holder string `json:"holder"`
	// Functions are those that are on, by name.
	Functions map[string]FunctionStatus `json:"functions"`
}

// The functions of a controller.
const (
	HealthFunction       = "health"
	RegisterHostFunction = "registerHost"
	ClusterAPIFunction   = "clusterAPI"
	ExportsFunction      = "exports"
	// FeedFunction answers programs that ask for clusters.
	FeedFunction = "feed"
	// ClusterSelectionsFunction acts on ClusterSelections.
	ClusterSelectionsFunction = "clusterSelections"
)

// SelectionScheduler is by whom PlacementDecisions of selections are made, as these say.
const SelectionScheduler = "clusterregistry-controller"

// FunctionStatus is how one function is.
type FunctionStatus struct {
	State FunctionState `json:"state"`
	// Message says why, for people. While the function runs it is empty, or says which
	// objects are held for a person to resolve, while the others are worked on.
	Message string `json:"message,omitempty"`
	// Since is when the state began.
	Since time.Time `json:"since"`
}

// FunctionState is a word for how a function is. It is fit for the reason of a condition.
type FunctionState string

const (
	// FunctionStarting waits for what it needs.
	FunctionStarting FunctionState = "Starting"
	// FunctionRunning does its work.
	FunctionRunning FunctionState = "Running"
	// FunctionRangesUnknown does its work, and entries may lead it to pods of the host
	// cluster, whose ranges it does not know.
	FunctionRangesUnknown FunctionState = "RangesUnknown"
	// FunctionIsolated reaches so few clusters that it turns no condition False.
	FunctionIsolated FunctionState = "Isolated"
	// FunctionRefused may not do what it is told to, and why is for a person to resolve.
	FunctionRefused FunctionState = "Refused"
	// FunctionFailing tries again what failed.
	FunctionFailing FunctionState = "Failing"
)

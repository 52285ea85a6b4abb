package clusterregistry

// Taint keeps workloads that don't tolerate it away from a cluster.
type Taint struct {
	Key    string
	Value  string
	Effect TaintEffect
}

// TaintEffect is what becomes of workloads that don't tolerate a taint.
type TaintEffect string

const (
	// TaintNoSchedule lets no new workload in.
	TaintNoSchedule TaintEffect = "NoSchedule"
	// TaintPreferNoSchedule lets a new workload in when there is no other place.
	TaintPreferNoSchedule TaintEffect = "PreferNoSchedule"
	// TaintNoExecute lets no new workload in and sends away those that are there.
	TaintNoExecute TaintEffect = "NoExecute"
)

// Heartbeat says how often a sign of life is expected.
type Heartbeat struct {
	PeriodSeconds   int32
	ToleratedMisses int32
}

// Manager is what manages a cluster's entry.
type Manager struct {
	Name string
}

// SourceReference is the object that a cluster's entry was made from.
type SourceReference struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	UID        string
}

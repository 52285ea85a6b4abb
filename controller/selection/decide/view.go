package decide

import (
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// View is what selections see of a cluster. It does not change: a cluster that does gets
// another one.
type View struct {
	facts
	// slot is a number that no other cluster has at the same time.
	slot int
	// variable is the value of the variable cluster.
	variable map[string]any
}

// facts is what a view is made of.
type facts struct {
	Name, ClusterSet, Version      string
	Labels, Properties, Conditions map[string]string
	Capacity, Allocatable          map[string]resource.Quantity
	Taints                         []v1beta1.Taint
	NodesTotal, NodesReady         int32
}

// NewView returns what selections see of a cluster: before when that is the same. The slot is
// a number that no other cluster has at the same time; numbers are low.
func NewView(cluster *v1beta1.Cluster, slot int, before *View) *View {
	now := factsOf(cluster)
	if before != nil && before.slot == slot && equality.DeepEqual(before.facts, now) {
		return before
	}
	return &View{facts: now, slot: slot, variable: now.variable()}
}

func factsOf(cluster *v1beta1.Cluster) facts {
	f := facts{Name: cluster.Name, ClusterSet: cluster.Spec.ClusterSet, Labels: cluster.Labels, Taints: cluster.Spec.Taints}
	status := cluster.Status
	if status == nil {
		return f
	}
	f.Version, f.Capacity, f.Allocatable = status.Version.Kubernetes, status.Capacity, status.Allocatable
	f.Properties = make(map[string]string, len(status.Properties))
	for _, p := range status.Properties {
		f.Properties[p.Name] = p.Value
	}
	f.Conditions = make(map[string]string, len(status.Conditions))
	for _, c := range status.Conditions {
		f.Conditions[c.Type] = string(c.Status)
	}
	if status.Nodes != nil {
		f.NodesTotal, f.NodesReady = status.Nodes.Total, status.Nodes.Ready
	}
	return f
}

// variable returns the facts as expressions have them.
func (f facts) variable() map[string]any {
	taints := make([]any, 0, len(f.Taints))
	for _, t := range f.Taints {
		taints = append(taints, map[string]any{"key": t.Key, "value": t.Value, "effect": string(t.Effect)})
	}
	return map[string]any{
		"name": f.Name, "clusterSet": f.ClusterSet, "version": f.Version,
		"labels": orEmpty(f.Labels), "properties": orEmpty(f.Properties), "conditions": orEmpty(f.Conditions),
		"capacity": quantities(f.Capacity), "allocatable": quantities(f.Allocatable),
		"nodes":  map[string]any{"total": int64(f.NodesTotal), "ready": int64(f.NodesReady)},
		"taints": taints,
	}
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// quantities returns copies: a comparison may change how a quantity is stored.
func quantities(m map[string]resource.Quantity) map[string]any {
	out := make(map[string]any, len(m))
	for name, q := range m {
		copied := q.DeepCopy()
		out[name] = apiservercel.Quantity{Quantity: &copied}
	}
	return out
}

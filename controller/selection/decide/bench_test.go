package decide

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// large returns the views of a fleet.
func large(clusters int) []*View {
	var out []*View
	for i := range clusters {
		out = append(out, NewView(entry(fmt.Sprintf("cluster-%05d", i), func(c *v1beta1.Cluster) {
			c.Labels = map[string]string{"tier": []string{"gold", "silver"}[i%2], "region": fmt.Sprint("region-", i%20), "team": fmt.Sprint("team-", i%100)}
			c.Status.Allocatable = map[string]resource.Quantity{"cpu": *resource.NewQuantity(int64(i%977), resource.DecimalSI), "memory": resource.MustParse("64Gi")}
			c.Status.Capacity = c.Status.Allocatable
			c.Spec.Taints = nil
		}), i, nil))
	}
	return out
}

// processor returns the processor time that this process has taken, which other processes of a
// busy computer do not lengthen.
func processor(b *testing.B) time.Duration {
	var is syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &is); err != nil {
		b.Fatal(err)
	}
	return time.Duration(is.Utime.Nano() + is.Stime.Nano())
}

// BenchmarkSelections decides 100 selections of 10,000 clusters, first when nothing is known and
// then each time one cluster has changed. The sizes are in docs/reference/controller.md.
func BenchmarkSelections(b *testing.B) {
	const clusters, selections = 10000, 100
	inUse := func() float64 {
		runtime.GC()
		var is runtime.MemStats
		runtime.ReadMemStats(&is)
		return float64(is.HeapAlloc) / (1 << 20)
	}
	before := inUse()
	views := large(clusters)
	fleet := inUse()
	var evaluators []*Evaluator
	spec := operatorv1alpha1.ClusterSelectionSpec{Limit: 100, StabilizationSeconds: ptr.To[int32](300)}
	for i := range selections {
		evaluators = append(evaluators, &Evaluator{Program: compiled(b, fmt.Sprintf("cluster.labels[?'tier'].orValue('') == 'gold' && cluster.conditions[?'Available'].orValue('') == 'True' && cluster.labels['region'] != 'region-%d'", i%20), "-cluster.allocatable['cpu']")})
	}
	decided := make([][]operatorv1alpha1.ClusterDecision, selections)
	all := func() {
		for i, e := range evaluators {
			is, err := e.Run(b.Context(), views)
			if err != nil {
				b.Fatal(err)
			}
			decided[i] = e.Decide(Input{Spec: spec, Candidates: is.Candidates, Previous: decided[i], Now: time.Unix(1, 0), Changed: time.Unix(0, 0),
				Visible: func(string) *View { return views[0] }, Registered: func(string) bool { return true }}).Clusters
		}
	}
	start := processor(b)
	all()
	first := processor(b) - start
	known := inUse()
	i, start := 0, processor(b)
	for b.Loop() {
		views[i%clusters] = NewView(entry(views[i%clusters].Name, func(c *v1beta1.Cluster) {
			c.Labels = map[string]string{"tier": "gold", "region": fmt.Sprint(i)}
			c.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}}
		}), i%clusters, nil)
		i++
		all()
	}
	b.ReportMetric(first.Seconds(), "cpu-s/first")
	b.ReportMetric((processor(b)-start).Seconds()/float64(i), "cpu-s/change")
	b.ReportMetric(fleet-before, "MiB/fleet")
	b.ReportMetric(known-fleet, "MiB/selections")
}

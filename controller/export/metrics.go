package export

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterregistry/operator/internal/contract"
)

// Metrics are those of this function, for each namespace and format that it publishes in. Nil counts
// nothing.
type Metrics struct {
	objects          *prometheus.GaugeVec
	ready            *prometheus.GaugeVec
	writes, failures *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	const namespace, format = "target_namespace", "format"
	m := &Metrics{
		objects:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "clusterregistry_controller_exports", Help: "Objects of clusters that are published, and those among them or besides that are not as they should be, by state."}, []string{namespace, format, "state"}),
		ready:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "clusterregistry_controller_export_ready", Help: "1 while clusters are published in a namespace and format, 0 while that is not allowed, fails, or is waiting for a ClusterSelection."}, []string{namespace, format}),
		writes:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clusterregistry_controller_export_writes_total", Help: "Requests by which objects of clusters were made, changed or deleted."}, []string{namespace, format}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clusterregistry_controller_export_write_failures_total", Help: "Those that failed, and are made again."}, []string{namespace, format}),
	}
	for _, c := range []prometheus.Collector{m.objects, m.ready, m.writes, m.failures} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

var one = map[bool]float64{true: 1}

// judged notes how the function is in a target.
func (m *Metrics) judged(in Target, v verdict) {
	if m != nil {
		m.ready.WithLabelValues(in.Namespace, in.Format.Kind().Name).Set(one[v.state == contract.FunctionRunning && !v.waiting])
	}
}

// wrote counts a request that writes.
func (m *Metrics) wrote(in Target, err error) {
	if m == nil {
		return
	}
	m.writes.WithLabelValues(in.Namespace, in.Format.Kind().Name).Add(one[err == nil])
	m.failures.WithLabelValues(in.Namespace, in.Format.Kind().Name).Add(one[err != nil])
}

// count brings the numbers of objects up to date.
func (s *session) count() {
	m := s.Metrics
	if m == nil {
		return
	}
	without := 0
	for _, providers := range s.shown {
		if !providers {
			without++
		}
	}
	for state, count := range map[string]int{
		"published": len(s.shown), "without_provider": without, "held": len(s.held), "kept": len(s.kept), "terminating": len(s.ending), "failing": len(s.failing), "withheld": len(s.without),
	} {
		m.objects.WithLabelValues(s.Namespace, s.kind.Name, state).Set(float64(count))
	}
}

// forget drops the counts of a target that is closed: no one knows what is in it.
func (m *Metrics) forget(in Target) {
	if m != nil {
		m.objects.DeletePartialMatch(prometheus.Labels{"target_namespace": in.Namespace, "format": in.Format.Kind().Name})
	}
}

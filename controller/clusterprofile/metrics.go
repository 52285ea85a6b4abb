package clusterprofile

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterregistry/operator/internal/contract"
)

// Metrics are those of this function, for each namespace that it publishes in. Nil counts
// nothing.
type Metrics struct {
	profiles         *prometheus.GaugeVec
	ready            *prometheus.GaugeVec
	writes, failures *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	const namespace = "target_namespace"
	m := &Metrics{
		profiles: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "clusterregistry_controller_cluster_profiles", Help: "ClusterProfiles that are published, and those among them or besides that are not as they should be, by state."}, []string{namespace, "state"}),
		ready:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "clusterregistry_controller_cluster_profile_namespace_ready", Help: "1 while ClusterProfiles are published in a namespace, 0 while that is not allowed, or fails."}, []string{namespace}),
		writes:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clusterregistry_controller_cluster_profile_writes_total", Help: "Requests by which ClusterProfiles were made, changed or deleted."}, []string{namespace}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clusterregistry_controller_cluster_profile_write_failures_total", Help: "Those that failed, and are made again."}, []string{namespace}),
	}
	for _, c := range []prometheus.Collector{m.profiles, m.ready, m.writes, m.failures} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

var one = map[bool]float64{true: 1}

// judged notes how the function is in a namespace.
func (m *Metrics) judged(namespace string, v verdict) {
	if m != nil {
		m.ready.WithLabelValues(namespace).Set(one[v.state == contract.FunctionRunning])
	}
}

// wrote counts a request that writes.
func (m *Metrics) wrote(namespace string, err error) {
	if m == nil {
		return
	}
	m.writes.WithLabelValues(namespace).Add(one[err == nil])
	m.failures.WithLabelValues(namespace).Add(one[err != nil])
}

// count brings the numbers of profiles up to date.
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
		"published": len(s.shown), "without_provider": without, "held": len(s.held), "kept": len(s.kept), "terminating": len(s.ending), "failing": len(s.failing),
	} {
		m.profiles.WithLabelValues(s.Namespace, state).Set(float64(count))
	}
}

// forget drops the counts of a namespace that is closed: no one knows what is in it.
func (m *Metrics) forget(namespace string) {
	if m != nil {
		m.profiles.DeletePartialMatch(prometheus.Labels{"target_namespace": namespace})
	}
}

package selection

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterregistry/operator/internal/contract"
)

// Metrics are those of this function, for each namespace whose selections it acts on. Nil counts
// nothing.
type Metrics struct {
	ready      *prometheus.GaugeVec
	selections *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	const namespace = "target_namespace"
	m := &Metrics{
		ready:      prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "clusterregistry_controller_cluster_selection_namespace_ready", Help: "1 while the ClusterSelections of a namespace are acted on, 0 while that is not allowed, or fails."}, []string{namespace}),
		selections: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "clusterregistry_controller_cluster_selections", Help: "ClusterSelections, by whether their decisions are up to date."}, []string{namespace, "ready"}),
	}
	for _, c := range []prometheus.Collector{m.ready, m.selections} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// judged notes how the function is in a namespace.
func (m *Metrics) judged(namespace string, state contract.FunctionState) {
	if m == nil {
		return
	}
	ready := 0.0
	if state == contract.FunctionRunning {
		ready = 1
	}
	m.ready.WithLabelValues(namespace).Set(ready)
}

// counted notes how many selections are ready, and how many are not.
func (m *Metrics) counted(namespace string, ready, others int) {
	if m != nil {
		m.selections.WithLabelValues(namespace, "true").Set(float64(ready))
		m.selections.WithLabelValues(namespace, "false").Set(float64(others))
	}
}

// forget drops the counts of a namespace that is closed: no one knows what is in it.
func (m *Metrics) forget(namespace string) {
	if m != nil {
		m.selections.DeletePartialMatch(prometheus.Labels{"target_namespace": namespace})
	}
}

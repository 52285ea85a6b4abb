package health

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterregistry/operator/controller/probe"
)

// Metrics are those of the health function. Nil counts nothing.
type Metrics struct {
	probes   *prometheus.CounterVec
	writes   prometheus.Counter
	failures prometheus.Counter
	number   *prometheus.GaugeVec
	isolated prometheus.Gauge
	lateness prometheus.Histogram
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		probes:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clusterregistry_controller_probes_total", Help: "Probes of clusters by what they found."}, []string{"reason"}),
		writes:   prometheus.NewCounter(prometheus.CounterOpts{Name: "clusterregistry_controller_reports_total", Help: "Reports that were written to the registry."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "clusterregistry_controller_report_failures_total", Help: "Reports that could not be written, and are made again after the next probe."}),
		number:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "clusterregistry_controller_clusters", Help: "Clusters in the registry, and those of them that the last probe did not reach."}, []string{"state"}),
		isolated: prometheus.NewGauge(prometheus.GaugeOpts{Name: "clusterregistry_controller_isolated", Help: "1 while so many clusters can't be reached that the outage is most likely on this side."}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "clusterregistry_controller_probe_delay_seconds", Help: "Time between when a probe was due and when it began.", Buckets: []float64{.01, .1, 1, 10, 60}}),
	}
	for _, c := range []prometheus.Collector{m.probes, m.writes, m.failures, m.number, m.isolated, m.lateness} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *Metrics) probed(result probe.Result) {
	if m != nil {
		m.probes.WithLabelValues(result.Reason).Inc()
	}
}

func (m *Metrics) wrote() {
	if m != nil {
		m.writes.Inc()
	}
}

func (m *Metrics) failed() {
	if m != nil {
		m.failures.Inc()
	}
}

func (m *Metrics) clusters(all, unreached int, isolated bool) {
	if m == nil {
		return
	}
	m.number.WithLabelValues("registered").Set(float64(all))
	m.number.WithLabelValues("unreached").Set(float64(unreached))
	m.isolated.Set(map[bool]float64{true: 1}[isolated])
}

func (m *Metrics) began(late time.Duration) {
	if m != nil {
		m.lateness.Observe(late.Seconds())
	}
}

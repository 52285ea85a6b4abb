package feed

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of this function. Nil counts nothing.
type Metrics struct {
	requests *prometheus.CounterVec
	clusters *prometheus.GaugeVec
	complete *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "clusterregistry_controller_feed_requests_total", Help: "Requests for the clusters of the registry, by format and status."}, []string{"format", "code"}),
		clusters: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "clusterregistry_controller_feed_clusters", Help: "Clusters that can be asked for, and those among them that have an address."}, []string{"state"}),
		complete: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "clusterregistry_controller_feed_complete", Help: "1 while all clusters are known, 0 while requests are answered with 503."}, nil),
	}
	for _, c := range []prometheus.Collector{m.requests, m.clusters, m.complete} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// served counts a request.
func (m *Metrics) served(in form, status int) {
	if m == nil {
		return
	}
	name := in.name
	if name == "" {
		name = "none"
	}
	m.requests.WithLabelValues(name, strconv.Itoa(status)).Inc()
}

var one = map[bool]float64{true: 1}

// judged notes what there is to answer, and whether it is all.
func (m *Metrics) judged(of *fleet, err error) {
	if m == nil {
		return
	}
	all, addressed := of.counts()
	m.clusters.WithLabelValues("known").Set(float64(all))
	m.clusters.WithLabelValues("addressed").Set(float64(addressed))
	m.complete.WithLabelValues().Set(one[err == nil])
}

package clusterapi

import "github.com/prometheus/client_golang/prometheus"

// Metrics are those of this function. Nil counts nothing. A replica that does not lead has
// none of them: there is no series before its first value.
type Metrics struct {
	served, selected, failing *prometheus.GaugeVec
	held                      *prometheus.GaugeVec
	ready                     *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		served:   gauge("clusterregistry_controller_cluster_api_served", "1 while the host cluster serves Clusters of Cluster API in the version that is read, 0 while it does not."),
		selected: gauge("clusterregistry_controller_cluster_api_selected_clusters", "Clusters of Cluster API that are selected, in the namespaces that are read."),
		failing:  gauge("clusterregistry_controller_cluster_api_failing_clusters", "Clusters of Cluster API that could not be brought into the registry several times in a row."),
		held:     gauge("clusterregistry_controller_cluster_api_held_clusters", "Clusters of Cluster API that are not imported, or not fully, until a person resolves it, by why.", "reason"),
		ready:    gauge("clusterregistry_controller_cluster_api_namespace_ready", "1 while the Clusters of a namespace are read, 0 while they can't be, or may not be.", "source_namespace"),
	}
	for _, c := range []prometheus.Collector{m.served, m.selected, m.failing, m.held, m.ready} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// heldReasons are those that a Cluster is held for.
var heldReasons = []string{HeldInvalidName, HeldNameTaken, HeldHostCluster, HeldRefused, HeldUndecodable, HeldIncomplete}

var one = map[bool]float64{true: 1}

// asked notes whether Cluster API is there.
func (m *Metrics) asked(served Served) {
	if m != nil {
		m.served.WithLabelValues().Set(one[served == ServedYes])
	}
}

// measure brings the metrics up to date.
func (c *Controller) measure() {
	m := c.Metrics
	if m == nil {
		return
	}
	selected := 0
	for name, n := range c.namespaces {
		labels := n.view().labels
		for _, source := range n.sources() {
			if c.selected(source, labels) {
				selected++
			}
		}
		m.ready.WithLabelValues(name).Set(one[n.problem() == trouble{}])
	}
	m.selected.WithLabelValues().Set(float64(selected))
	held := map[string]int{}
	for _, hold := range c.held() {
		held[hold.reason]++
	}
	for _, reason := range heldReasons {
		m.held.WithLabelValues(reason).Set(float64(held[reason]))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.failing.WithLabelValues().Set(float64(len(c.failing)))
}

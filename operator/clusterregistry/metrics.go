package clusterregistry

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	conditionMetric = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "clusterregistry_condition",
		Help: "1 for the status and reason that each condition of a ClusterRegistry has. APIServiceReady with reason BackendDown means that deletions of namespaces in the host hang.",
	}, []string{"namespace", "name", "type", "status", "reason"})
	expiryMetric = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "clusterregistry_certificate_expiration_timestamp_seconds",
		Help: "When each certificate of a ClusterRegistry ends, in seconds since 1970.",
	}, []string{"namespace", "name", "certificate"})
)

func init() { metrics.Registry.MustRegister(conditionMetric, expiryMetric) }

// measure brings a registry's metrics up to date.
func measure(s *scope) {
	unmeasure(client.ObjectKeyFromObject(s.registry))
	for _, c := range s.registry.Status.Conditions {
		conditionMetric.WithLabelValues(s.registry.Namespace, s.registry.Name, c.Type, string(c.Status), c.Reason).Set(1)
	}
	for _, c := range s.registry.Status.Certificates {
		if c.NotAfter != nil {
			expiryMetric.WithLabelValues(s.registry.Namespace, s.registry.Name, c.Name).Set(float64(c.NotAfter.Unix()))
		}
	}
}

// unmeasure drops a registry's metrics.
func unmeasure(key client.ObjectKey) {
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	conditionMetric.DeletePartialMatch(labels)
	expiryMetric.DeletePartialMatch(labels)
}

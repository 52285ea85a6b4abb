package clusterregistry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The metrics of registries, all of them gauges with the labels namespace and
// name. They tell what the last look at a registry found. docs/reference/metrics.md
// promises them, and a test compares.
var (
	conditionMetric = describe("clusterregistry_condition",
		"1 for the status and reason that each condition of a ClusterRegistry has. APIServiceReady with reason BackendDown means that deletions of namespaces in the host hang.",
		"type", "status", "reason")
	infoMetric = describe("clusterregistry_info",
		"1 for each ClusterRegistry, with its mode and the versions that run. One that is not known yet is empty.",
		"mode", "version", "etcd_version", "host_version")
	expiryMetric = describe("clusterregistry_certificate_expiration_timestamp_seconds",
		"When each certificate of a ClusterRegistry ends, in seconds since 1970.", "certificate")
	renewalMetric = describe("clusterregistry_certificate_renewal_timestamp_seconds",
		"When cert-manager renews each certificate of a ClusterRegistry, in seconds since 1970.", "certificate")
	serversMetric = describe("clusterregistry_server_replicas",
		"How many API servers a ClusterRegistry is to have.")
	readyServersMetric = describe("clusterregistry_server_ready_replicas",
		"How many API servers of a ClusterRegistry serve.")
	serverMemoryMetric = describe("clusterregistry_server_memory_limit_bytes",
		"How much memory each API server of a ClusterRegistry may use before the host kills it.")
	membersMetric = describe("clusterregistry_etcd_members",
		"How many members the etcd of a ClusterRegistry has.")
	readyMembersMetric = describe("clusterregistry_etcd_ready_members",
		"How many members of the etcd of a ClusterRegistry serve.")
	databaseMetric = describe("clusterregistry_etcd_database_size_bytes",
		"The size of the database of each member of a ClusterRegistry's etcd that answers.", "member")
	quotaMetric = describe("clusterregistry_etcd_database_quota_bytes",
		"The size of the database at which a ClusterRegistry's own etcd refuses writes.")
	phaseMetric = describe("clusterregistry_operation_phase_start_timestamp_seconds",
		"When the present phase of the operation that is under way, such as an upgrade, began, in seconds since 1970.", "type", "from", "to", "phase")
)

// measured are the metrics of all registries.
var measured = &collector{registries: map[client.ObjectKey][]prometheus.Metric{}}

func init() { metrics.Registry.MustRegister(measured) }

// collector has the metrics of each registry exchanged as a whole: one that
// vanished for a moment would start an alert's waiting time anew.
type collector struct {
	lock       sync.Mutex
	registries map[client.ObjectKey][]prometheus.Metric
}

// descriptions are those of all metrics.
var descriptions []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	description := prometheus.NewDesc(name, help, append([]string{"namespace", "name"}, labels...), nil)
	descriptions = append(descriptions, description)
	return description
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, description := range descriptions {
		out <- description
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, all := range c.registries {
		for _, metric := range all {
			out <- metric
		}
	}
}

// measure brings a registry's metrics up to date.
func measure(s *scope) {
	all := s.metrics()
	measured.lock.Lock()
	defer measured.lock.Unlock()
	measured.registries[client.ObjectKeyFromObject(s.registry)] = all
}

// unmeasure drops a registry's metrics.
func unmeasure(key client.ObjectKey) {
	measured.lock.Lock()
	defer measured.lock.Unlock()
	delete(measured.registries, key)
}

// metrics are the registry's.
func (s *scope) metrics() []prometheus.Metric {
	var out []prometheus.Metric
	set := func(description *prometheus.Desc, value float64, labels ...string) {
		labels = append([]string{s.registry.Namespace, s.registry.Name}, labels...)
		out = append(out, prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...))
	}
	status := s.registry.Status
	set(infoMetric, 1, string(s.registry.Spec.Mode), status.Version, status.EtcdVersion, status.HostVersion)
	for _, c := range status.Conditions {
		set(conditionMetric, 1, c.Type, string(c.Status), c.Reason)
	}
	for _, c := range status.Certificates {
		if c.NotAfter != nil {
			set(expiryMetric, float64(c.NotAfter.Unix()), c.Name)
		}
		if c.RenewalTime != nil {
			set(renewalMetric, float64(c.RenewalTime.Unix()), c.Name)
		}
	}
	set(serversMetric, float64(s.registry.Spec.Server.Replicas))
	set(readyServersMetric, float64(status.Server.ReadyReplicas))
	if limit := s.serverMemory(); limit > 0 {
		set(serverMemoryMetric, float64(limit))
	}
	s.etcdMetrics(set)
	if o := status.Operation; o != nil {
		set(phaseMetric, float64(o.PhaseStartedTime.Unix()), string(o.Type), o.From, o.To, string(o.Phase))
	}
	return out
}

// etcdMetrics counts members by the status, which keeps what was seen last while
// etcd can't be asked. How full they are is told of those that answer.
func (s *scope) etcdMetrics(set func(description *prometheus.Desc, value float64, labels ...string)) {
	if members := s.registry.Status.Etcd.Members; len(members) > 0 {
		ready := 0
		for _, member := range members {
			if member.Ready {
				ready++
			}
		}
		set(membersMetric, float64(len(members)))
		set(readyMembersMetric, float64(ready))
	}
	for _, member := range s.etcdState.Members {
		if member.DBSize > 0 {
			set(databaseMetric, float64(member.DBSize), member.Name)
		}
	}
	if s.registry.Spec.Etcd.External == nil {
		set(quotaMetric, float64(s.etcdQuota()))
	}
}

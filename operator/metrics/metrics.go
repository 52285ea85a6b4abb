// Package metrics tells Prometheus what the last reconcile of each ClusterRegistry
// found. descriptions.go has what docs/reference/metrics.md promises.
package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Registry is what a reconcile found of a ClusterRegistry, as far as metrics report
// it. What is zero is not known, and has no metric.
type Registry struct {
	types.NamespacedName
	// Mode and Servers are those of the spec: how many servers there are to be.
	Mode    operatorv1alpha1.Mode
	Servers int32
	// Status is the one that is written, with its conditions.
	Status operatorv1alpha1.ClusterRegistryStatus
	// ServerMemory is the limit of memory of each server, in bytes.
	ServerMemory int64
	// DatabaseSizes are those of the etcd members that answer, in bytes, by name.
	DatabaseSizes map[string]int64
	// Quota is the size of the database at which etcd refuses writes, in bytes.
	Quota int64
	// WentBack is how many revisions etcd went back by, as long as no person has decided.
	WentBack int64
}

// registered are the metrics of all registries.
var registered = newCollector()

func init() { metrics.Registry.MustRegister(registered) }

// Set has the metrics of a registry tell what was found, and nothing of what they told
// before.
func Set(r Registry) { registered.set(r) }

// Delete drops the metrics of a registry that is gone, if there are any.
func Delete(key types.NamespacedName) { registered.delete(key) }

// collector has the metrics of each registry exchanged as a whole: one that
// vanished for a moment would start an alert's waiting time again.
type collector struct {
	lock       sync.Mutex
	registries map[types.NamespacedName][]prometheus.Metric
}

func newCollector() *collector {
	return &collector{registries: map[types.NamespacedName][]prometheus.Metric{}}
}

func (c *collector) set(r Registry) {
	all := of(r)
	c.lock.Lock()
	defer c.lock.Unlock()
	c.registries[r.NamespacedName] = all
}

func (c *collector) delete(key types.NamespacedName) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.registries, key)
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

// of returns the metrics of a registry.
func of(r Registry) []prometheus.Metric {
	var out []prometheus.Metric
	set := func(description *prometheus.Desc, value float64, labels ...string) {
		labels = append([]string{r.Namespace, r.Name}, labels...)
		out = append(out, prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...))
	}
	status := r.Status
	set(infoMetric, 1, string(r.Mode), status.Version, status.EtcdVersion, status.HostVersion)
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
	set(serversMetric, float64(r.Servers))
	set(readyServersMetric, float64(status.Server.ReadyReplicas))
	if r.ServerMemory > 0 {
		set(serverMemoryMetric, float64(r.ServerMemory))
	}
	etcd(r, set)
	backups(status.Backup, set)
	if o := status.Operation; o != nil {
		set(phaseMetric, float64(o.PhaseStartedTime.Unix()), string(o.Type), o.From, o.To, string(o.Phase))
	}
	return out
}

// backups are about the last backups, as far as there were any.
func backups(status *operatorv1alpha1.BackupStatus, set func(description *prometheus.Desc, value float64, labels ...string)) {
	if status == nil {
		return
	}
	if success := status.LastSuccess; success != nil {
		set(backupSuccessMetric, float64(success.Time.Unix()))
		set(backupSizeMetric, float64(success.Bytes))
		if success.VerifiedTime != nil {
			set(backupVerifiedMetric, float64(success.VerifiedTime.Unix()))
		}
	}
	if failure := status.LastFailure; failure != nil {
		set(backupFailureMetric, float64(failure.Time.Unix()))
	}
	if status.NextRun != nil {
		set(backupNextMetric, float64(status.NextRun.Unix()))
	}
}

// etcd counts members by the status, which keeps what was seen last while etcd can't
// be asked. How full they are is reported for those that answer.
func etcd(r Registry, set func(description *prometheus.Desc, value float64, labels ...string)) {
	if members := r.Status.Etcd.Members; len(members) > 0 {
		ready := 0
		for _, member := range members {
			if member.Ready {
				ready++
			}
		}
		set(membersMetric, float64(len(members)))
		set(readyMembersMetric, float64(ready))
	}
	for member, size := range r.DatabaseSizes {
		set(databaseMetric, float64(size), member)
	}
	if r.Quota > 0 {
		set(quotaMetric, float64(r.Quota))
	}
	if r.WentBack > 0 {
		set(wentBackMetric, float64(r.WentBack))
	}
}

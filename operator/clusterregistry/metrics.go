package clusterregistry

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/metrics"
)

// measure brings a registry's metrics up to date.
func measure(s *scope) { metrics.Set(s.measured()) }

// measured is what metrics report of the registry.
func (s *scope) measured() metrics.Registry {
	out := metrics.Registry{
		NamespacedName: client.ObjectKeyFromObject(s.registry),
		Mode:           s.registry.Spec.Mode,
		Servers:        s.registry.Spec.Server.Replicas,
		Status:         s.registry.Status,
		ServerMemory:   s.serverMemory(),
		DatabaseSizes:  map[string]int64{},
	}
	for _, member := range s.etcdState.Members {
		if member.DBSize > 0 {
			out.DatabaseSizes[member.Name] = member.DBSize
		}
	}
	if s.registry.Spec.Etcd.External == nil {
		out.Quota = s.etcdQuota()
	}
	return out
}

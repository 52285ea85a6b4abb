package clusterregistry

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/metrics"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation/recovery"
	"github.com/clusterregistry/operator/operator/render"
)

// measure brings a registry's metrics up to date.
func measure(s *scope) { metrics.Set(s.measured()) }

// measured is what metrics report of the registry.
func (s *scope) measured() metrics.Registry {
	out := metrics.Registry{
		NamespacedName: client.ObjectKeyFromObject(s.Registry),
		Mode:           s.Registry.Spec.Mode,
		Servers:        s.Registry.Spec.Server.Replicas,
		Status:         s.Registry.Status,
		ServerMemory:   s.serverMemory(),
		DatabaseSizes:  map[string]int64{},
	}
	if back := recovery.WentBack(s.Pass); back != nil {
		out.WentBack = back.From - back.To
	}
	for _, member := range s.Members.State.Members {
		if member.DBSize > 0 {
			out.DatabaseSizes[member.Name] = member.DBSize
		}
		if member.Quota > 0 && (out.Quota == 0 || member.Quota < out.Quota) {
			out.Quota = member.Quota
		}
	}
	if s.Registry.Spec.Etcd.External == nil {
		out.Quota = s.Volumes.EtcdQuota(s.Registry)
	}
	return out
}

// serverMemory returns the limit of memory of the desired servers, zero when
// there is none or it is not known.
func (s *scope) serverMemory() int64 {
	if s.Rendered == nil {
		return 0
	}
	for _, object := range s.Rendered.Stages[render.StageServer] {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, one := range containers {
			container, _ := one.(map[string]any)
			text, _, _ := unstructured.NestedString(container, "resources", "limits", "memory")
			if limit, err := resource.ParseQuantity(text); err == nil && container["name"] == operand.ComponentServer {
				return limit.Value()
			}
		}
	}
	return 0
}

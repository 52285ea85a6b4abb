package join

import (
	"maps"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// merged returns the registry's cluster with what join sets; what others have added
// to it stays.
func merged(wanted, old *v1beta1.Cluster) *v1beta1.Cluster {
	if old == nil {
		return wanted
	}
	out := old.DeepCopy()
	if len(wanted.Labels) > 0 && out.Labels == nil {
		out.Labels = map[string]string{}
	}
	maps.Copy(out.Labels, wanted.Labels)
	if wanted.Spec.DisplayName != "" {
		out.Spec.DisplayName = wanted.Spec.DisplayName
	}
	if wanted.Spec.ClusterSet != "" {
		out.Spec.ClusterSet = wanted.Spec.ClusterSet
	}
	out.Spec.ID = wanted.Spec.ID
	for _, endpoint := range old.Spec.Endpoints {
		if endpoint.Name == wanted.Spec.Endpoints[0].Name && len(wanted.Spec.Endpoints[0].ClientCIDRs) == 0 {
			wanted.Spec.Endpoints[0].ClientCIDRs = endpoint.ClientCIDRs // none were given
		}
	}
	out.Spec.Endpoints = put(out.Spec.Endpoints, wanted.Spec.Endpoints, func(e v1beta1.Endpoint) string { return e.Name })
	out.Spec.Access = put(out.Spec.Access, wanted.Spec.Access, func(a v1beta1.Access) string { return a.Name })
	return out
}

// put returns a list with other items in the place of those of the same name.
func put[T any](list, others []T, name func(T) string) []T {
	for _, other := range others {
		found := false
		for i := range list {
			if name(list[i]) == name(other) {
				list[i], found = other, true
			}
		}
		if !found {
			list = append(list, other)
		}
	}
	return list
}

// Package bundle keeps a CA bundle once in memory, however many clusters, endpoints
// and forms of a cluster have it. Fleets have few CAs in comparison: often one, or one
// for each of their clusters, which is there in the form of each version of the API.
//
// Bundles are shared as clusters are decoded from storage, so that what the watch cache
// holds shares them, and all that is converted from there. Their bytes must never be
// changed in place, as nothing that comes from the watch cache may: a copy (DeepCopy)
// has bytes of its own, and so has whatever is appended to a bundle.
package bundle

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// Getter returns a getter whose options decode clusters that share their CA bundles.
// Other resources are left as they are.
func Getter(options generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return getter{options, newTable()}
}

type getter struct {
	generic.RESTOptionsGetter
	bundles *table
}

// GetRESTOptions returns the options of the getter below, with its codec wrapped.
func (g getter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil || resource != clusterregistry.Resource("clusters") {
		return options, err
	}
	config := *options.StorageConfig
	config.Codec = codec{config.Codec, g.bundles}
	options.StorageConfig = &config
	return options, nil
}

// codec is a storage's codec: its objects are of the hub. What it writes is what the one
// below writes.
type codec struct {
	runtime.Codec
	bundles *table
}

// Decode reads an object, and gives it the bundles that others have already.
func (c codec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if err != nil {
		return object, kind, err
	}
	if cluster, ok := object.(*clusterregistry.Cluster); ok {
		spec := &cluster.Spec
		spec.KubernetesAPIEndpoints.CABundle = c.bundles.share(spec.KubernetesAPIEndpoints.CABundle)
		for i := range spec.Endpoints {
			spec.Endpoints[i].CABundle = c.bundles.share(spec.Endpoints[i].CABundle)
		}
	}
	return object, kind, nil
}

// Package remainder keeps with a stored cluster what the stored version has no
// field for. In etcd it is an annotation; in the server it is a field of the hub
// that no version shows, so that clients never meet it. During a rolling upgrade
// replicas of two releases write the same objects: the older one can't read the
// remainder, and carries it along.
package remainder

import (
	"io"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// Getter returns a getter whose options encode and decode clusters with their
// remainder. Other resources are left as they are.
func Getter(options generic.RESTOptionsGetter) generic.RESTOptionsGetter { return getter{options} }

type getter struct{ generic.RESTOptionsGetter }

// GetRESTOptions returns the options of the getter below, with its codec wrapped.
func (g getter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil || resource != clusterregistry.Resource("clusters") {
		return options, err
	}
	config := *options.StorageConfig
	config.Codec = codec{config.Codec}
	options.StorageConfig = &config
	return options, nil
}

// codec is a storage's codec: its objects are of the hub.
type codec struct{ runtime.Codec }

// Identifier tells this codec from the one that it wraps: what the two write
// differs.
func (c codec) Identifier() runtime.Identifier {
	return "remainder(" + c.Codec.Identifier() + ")"
}

// Encode writes an object with its remainder as an annotation. The object is
// shared with caches, so that a copy gets it.
func (c codec) Encode(object runtime.Object, to io.Writer) error {
	if shared, ok := object.(runtime.CacheableObject); ok {
		return shared.CacheEncode(c.Identifier(), c.encode, to)
	}
	return c.encode(object, to)
}

func (c codec) encode(object runtime.Object, to io.Writer) error {
	cluster, ok := object.(*clusterregistry.Cluster)
	if !ok || cluster.Remainder == "" {
		return c.Codec.Encode(object, to)
	}
	stored := *cluster
	stored.Annotations = maps.Clone(cluster.Annotations)
	if stored.Annotations == nil {
		stored.Annotations = map[string]string{}
	}
	stored.Annotations[clusterregistry.RemainderAnnotation] = cluster.Remainder
	return c.Codec.Encode(&stored, to)
}

// Decode reads an object and takes the remainder out of its annotations.
func (c codec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if err != nil {
		return object, kind, err
	}
	if cluster, ok := object.(*clusterregistry.Cluster); ok {
		cluster.Remainder = cluster.Annotations[clusterregistry.RemainderAnnotation]
		delete(cluster.Annotations, clusterregistry.RemainderAnnotation)
		if len(cluster.Annotations) == 0 {
			cluster.Annotations = nil
		}
	}
	return object, kind, nil
}

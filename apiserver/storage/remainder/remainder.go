// Package remainder keeps with a stored cluster what the stored version has no
// field for. In etcd it is an annotation; in the server it is where it belongs in
// the hub, so that clients never meet it.
//
// During a rolling upgrade replicas that store different versions write the same
// objects, and each reads what the other has stored. A part of the remainder that a
// replica doesn't know is of a newer release, and is carried along.
package remainder

import (
	"fmt"
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
	kind, ok := config.EncodeVersioner.KindForGroupVersionKinds([]schema.GroupVersionKind{clusterregistry.SchemeGroupVersion.WithKind("Cluster")})
	if !ok {
		return options, fmt.Errorf("the storage has no version for clusters: its versions are %s", config.EncodeVersioner.Identifier())
	}
	config.Codec = codec{config.Codec, kind.Version}
	options.StorageConfig = &config
	return options, nil
}

// codec is a storage's codec: its objects are of the hub.
type codec struct {
	runtime.Codec
	// version is what the codec below writes.
	version string
}

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
	if !ok {
		return c.Codec.Encode(object, to)
	}
	remainder, err := of(cluster, c.version)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", cluster.Name, err)
	}
	if remainder == "" {
		return c.Codec.Encode(cluster, to)
	}
	stored := *cluster
	stored.Annotations = maps.Clone(cluster.Annotations)
	if stored.Annotations == nil {
		stored.Annotations = map[string]string{}
	}
	stored.Annotations[clusterregistry.RemainderAnnotation] = remainder
	return c.Codec.Encode(&stored, to)
}

// Decode reads an object of whatever version it is stored in, and puts the
// remainder where it belongs. A cluster that it is read into is emptied before: what
// that held would count as what the stored version doesn't show, see package form.
func (c codec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if cluster, ok := into.(*clusterregistry.Cluster); ok {
		*cluster = clusterregistry.Cluster{}
	}
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if err != nil {
		return object, kind, err
	}
	cluster, ok := object.(*clusterregistry.Cluster)
	if !ok {
		return object, kind, nil
	}
	remainder := cluster.Annotations[clusterregistry.RemainderAnnotation]
	if remainder != "" {
		delete(cluster.Annotations, clusterregistry.RemainderAnnotation)
		if len(cluster.Annotations) == 0 {
			cluster.Annotations = nil
		}
	}
	if err := add(remainder, cluster, kind.Version); err != nil {
		return object, kind, fmt.Errorf("cluster %s: its stored annotation %s can't be read: %w; restore the cluster from a snapshot of etcd, or remove the annotation there to lose what only it holds",
			cluster.Name, clusterregistry.RemainderAnnotation, err)
	}
	return object, kind, nil
}

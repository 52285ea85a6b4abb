package server

import (
	"bytes"
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apiserver/storage/bundle"
	"github.com/clusterregistry/operator/apiserver/storage/heartbeat"
	"github.com/clusterregistry/operator/apiserver/storage/remainder"
)

// encoded keeps clusters as etcd does, in the form that they have there: what a request costs
// with it is what it costs a server, without etcd.
type encoded struct {
	*memory // keeps everything else
	codec   runtime.Codec
	stored  map[string]value
	// cached are what a watch cache would list.
	cached []runtime.Object
	// beats keeps heartbeats in the same way.
	beats *encoded
}

// value is an object in etcd.
type value struct {
	data    []byte
	version uint64
}

func newEncoded() *encoded {
	return &encoded{memory: newMemory(), stored: map[string]value{}, beats: &encoded{memory: newMemory(), stored: map[string]value{}}}
}

// getter leads to it, with the codecs of a server.
func (e *encoded) getter() generic.RESTOptionsGetter { return bundle.Getter(remainder.Getter(e)) }

// GetRESTOptions leads to it.
func (e *encoded) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	switch resource {
	case clusterregistry.Resource("clusters"):
	case heartbeat.Resource:
		e = e.beats
	default:
		return e.memory.GetRESTOptions(resource, example)
	}
	proto := protobuf.NewSerializer(scheme, scheme)
	codec := codecs.CodecForVersions(proto, proto, v1beta1.SchemeGroupVersion, clusterregistry.SchemeGroupVersion)
	return generic.RESTOptions{
		StorageConfig:  &storagebackend.ConfigForResource{Config: storagebackend.Config{Codec: codec, EncodeVersioner: v1beta1.SchemeGroupVersion}},
		ResourcePrefix: resource.Resource,
		Decorator: func(config *storagebackend.ConfigForResource, _ string, _ func(runtime.Object) (string, error), _ func() runtime.Object, _ func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			e.codec = config.Codec
			return e, func() {}, nil
		},
	}, nil
}

func (e *encoded) Create(_ context.Context, key string, object, out runtime.Object, _ uint64) error {
	data, err := runtime.Encode(e.codec, object)
	if err != nil {
		return err
	}
	if e.value(key).data != nil {
		return storage.NewKeyExistsError(key, 0)
	}
	return e.keep(key, data, out)
}

func (e *encoded) Get(_ context.Context, key string, _ storage.GetOptions, out runtime.Object) error {
	stored := e.value(key)
	if stored.data == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	return e.decode(stored, out)
}

// GetList returns what is cached.
func (e *encoded) GetList(_ context.Context, _ string, _ storage.ListOptions, out runtime.Object) error {
	return meta.SetList(out, e.cached)
}

func (e *encoded) GuaranteedUpdate(_ context.Context, key string, out runtime.Object, _ bool, preconditions *storage.Preconditions, try storage.UpdateFunc, _ runtime.Object) error {
	before := e.value(key)
	if before.data == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	existing := reflect.New(reflect.TypeOf(out).Elem()).Interface().(runtime.Object)
	if err := e.decode(before, existing); err != nil {
		return err
	}
	if err := preconditions.Check(key, existing); err != nil {
		return err
	}
	updated, _, err := try(existing, storage.ResponseMeta{ResourceVersion: before.version})
	if err != nil {
		return err
	}
	if err := e.Versioner().PrepareObjectForStorage(updated); err != nil {
		return err
	}
	data, err := runtime.Encode(e.codec, updated)
	if err != nil {
		return err
	}
	if bytes.Equal(data, before.data) {
		return e.decode(before, out)
	}
	return e.keep(key, data, out)
}

// keep stores an object and returns it with a version of its own.
func (e *encoded) keep(key string, data []byte, out runtime.Object) error {
	e.mu.Lock()
	e.version++
	stored := value{data, e.version}
	e.stored[key] = stored
	e.mu.Unlock()
	return e.decode(stored, out)
}

// decode reads what is stored.
func (e *encoded) decode(stored value, out runtime.Object) error {
	if err := runtime.DecodeInto(e.codec, stored.data, out); err != nil {
		return err
	}
	return e.Versioner().UpdateObject(out, stored.version)
}

// value returns what is stored with a key, which has no data if it is nothing.
func (e *encoded) value(key string) value {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stored[key]
}

// remove forgets a cluster.
func (e *encoded) remove(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.stored, keyOf(name))
}

// keyOf returns the key of a cluster.
func keyOf(name string) string { return "/clusters/" + name }

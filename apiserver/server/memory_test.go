package server

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// memory keeps objects as etcd does, in the form of the hub.
type memory struct {
	storage.Interface
	mu      sync.Mutex
	objects map[string]runtime.Object
	version uint64
	// overtaken is called once, between reading an object and writing it: by another
	// request that is faster.
	overtaken func(runtime.Object)
	// broken is the prefix of keys that can't be read.
	broken string
}

func newMemory() *memory { return &memory{objects: map[string]runtime.Object{}} }

// GetRESTOptions leads to it.
func (m *memory) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{Config: storagebackend.Config{Codec: codecs.LegacyCodec(v1beta1.SchemeGroupVersion)}}, ResourcePrefix: resource.Resource,
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object, func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return m, func() {}, nil
		},
	}, nil
}

func (*memory) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (*memory) ReadinessCheck() error { return nil }

func (m *memory) Create(_ context.Context, key string, object, out runtime.Object, _ uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects[key] != nil {
		return storage.NewKeyExistsError(key, 0)
	}
	return m.put(key, object, out)
}

// put stores a copy, with a version of its own.
func (m *memory) put(key string, object, out runtime.Object) error {
	object = object.DeepCopyObject()
	m.version++
	if err := m.Versioner().UpdateObject(object, m.version); err != nil {
		return err
	}
	m.objects[key] = object
	copyTo(out, object)
	return nil
}

func copyTo(out, object runtime.Object) {
	if out != nil {
		reflect.ValueOf(out).Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
	}
}

// RequestWatchProgress does nothing: there is no cache that could be behind.
func (*memory) RequestWatchProgress(context.Context) error { return nil }

func (m *memory) Get(_ context.Context, key string, _ storage.GetOptions, out runtime.Object) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken != "" && strings.HasPrefix(key, m.broken) {
		return apierrors.NewInternalError(errors.New("it can't be read"))
	}
	if m.objects[key] == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	copyTo(out, m.objects[key])
	return nil
}

// GetList finds nothing: no other cluster has an id.
func (*memory) GetList(context.Context, string, storage.ListOptions, runtime.Object) error {
	return nil
}

func (m *memory) Delete(_ context.Context, key string, out runtime.Object, _ *storage.Preconditions, _ storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects[key] == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	copyTo(out, m.objects[key])
	delete(m.objects, key)
	return nil
}

func (m *memory) GuaranteedUpdate(_ context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions, try storage.UpdateFunc, _ runtime.Object) error {
	for {
		existing, meta := reflect.New(reflect.TypeOf(out).Elem()).Interface().(runtime.Object), storage.ResponseMeta{}
		switch stored := m.at(key); {
		case stored != nil:
			copyTo(existing, stored)
			meta.ResourceVersion, _ = m.Versioner().ObjectResourceVersion(stored)
		case !ignoreNotFound:
			return storage.NewKeyNotFoundError(key, 0)
		}
		if err := preconditions.Check(key, existing); err != nil {
			return err
		}
		updated, _, err := try(existing.DeepCopyObject(), meta) // it may take a lock
		if err != nil {
			return err
		}
		if faster := m.overtaken; faster != nil {
			m.overtaken = nil
			other := m.at(key).DeepCopyObject()
			faster(other)
			m.mu.Lock()
			err = m.put(key, other, nil)
			m.mu.Unlock()
			if err != nil {
				return err
			}
			continue
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.put(key, updated, out)
	}
}

// at returns what is stored.
func (m *memory) at(key string) runtime.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects[key]
}

// change changes a stored cluster behind the server's back.
func (m *memory) change(t *testing.T, name string, do func(*clusterregistry.Cluster)) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, object := range m.objects {
		if c, is := object.DeepCopyObject().(*clusterregistry.Cluster); is && c.Name == name {
			do(c)
			if err := m.put(key, c, nil); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("cluster %s is not stored", name)
}

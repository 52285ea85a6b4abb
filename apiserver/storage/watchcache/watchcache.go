// Package watchcache keeps the watch caches of a server while its etcd has no leader.
//
// A member of etcd that knows of no leader for three elections ends all watches, and refuses new
// ones at once. The cache of the library opens them again and again for half a minute, without a
// pause; then it drops what it holds, until etcd can be listed again. Here a cache waits as long
// as it takes, and continues from the last change that it was told.
package watchcache

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// Getter returns a getter whose options make storages with a watch cache where etcd's options
// have one, and those of the getter below elsewhere.
func Getter(below generic.RESTOptionsGetter, etcd *options.EtcdOptions) generic.RESTOptionsGetter {
	if !etcd.EnableWatchCache {
		return below
	}
	return getter{below, etcd.WatchCacheSizes}
}

type getter struct {
	generic.RESTOptionsGetter
	sizes []string
}

// GetRESTOptions returns the options of the getter below, with the cache of this package.
func (g getter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	restOptions, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return restOptions, err
	}
	sizes, err := options.ParseWatchCacheSizes(g.sizes)
	if err != nil {
		return restOptions, err
	}
	if size, ok := sizes[resource]; !ok || size > 0 {
		restOptions.Decorator = withCache
	}
	return restOptions, nil
}

// withCache makes a storage with a cache, as a generic.StorageDecorator.
func withCache(config *storagebackend.ConfigForResource, prefix string, keyOf func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
	attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
	raw, destroyRaw, err := generic.NewRawStorage(config, newFunc, newListFunc, prefix)
	if err != nil {
		return nil, nil, err
	}
	s, destroy, err := over(raw, cacher.Config{
		Versioner:           storage.APIObjectVersioner{},
		GroupResource:       config.GroupResource,
		EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix:      prefix,
		KeyFunc:             keyOf,
		NewFunc:             newFunc,
		NewListFunc:         newListFunc,
		GetAttrsFunc:        attributes,
		IndexerFuncs:        triggers,
		Indexers:            indexers,
		Codec:               config.Codec,
	})
	if err != nil {
		destroyRaw()
		return nil, nil, err
	}
	return s, sync.OnceFunc(func() {
		destroy()
		destroyRaw()
	}), nil
}

// over makes a storage with a cache over another one.
func over(raw storage.Interface, config cacher.Config) (storage.Interface, factory.DestroyFunc, error) {
	config.Storage = lasting{raw}
	c, err := cacher.NewCacherFromConfig(config)
	if err != nil {
		return nil, nil, err
	}
	delegator := cacher.NewCacheDelegator(c, raw)
	return delegator, func() {
		delegator.Stop()
		c.Stop()
	}, nil
}

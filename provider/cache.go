package provider

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// engaging marks the context in which controllers engage a cluster.
type engaging struct{}

func isEngaging(ctx context.Context) bool { return ctx.Value(engaging{}) != nil }

// kinds are the objects that controllers watch, by the informers that they asked any cluster
// for.
type kinds struct {
	lock    sync.Mutex
	objects map[string]client.Object
}

func (k *kinds) add(object client.Object) {
	k.lock.Lock()
	defer k.lock.Unlock()
	name := fmt.Sprintf("%T %s", object, object.GetObjectKind().GroupVersionKind())
	if _, ok := k.objects[name]; !ok {
		k.objects[name] = object.DeepCopyObject().(client.Object)
	}
}

func (k *kinds) all() []client.Object {
	k.lock.Lock()
	defer k.lock.Unlock()
	var out []client.Object
	for _, object := range k.objects {
		out = append(out, object)
	}
	return out
}

// boundedCache is the cache of one cluster, for which nothing waits that others need. A
// controller of multicluster-runtime holds a lock while it engages a cluster, until informers
// are synced; so here that happens before, within WaitForCacheSync, and what is not synced
// by then, such as a kind that no cluster was asked for yet, is not waited for.
type boundedCache struct {
	cache.Cache
	timeout time.Duration
	kinds   *kinds

	lock sync.Mutex
	err  error
}

// newCache returns a constructor of such caches.
func newCache(inner cache.NewCacheFunc, timeout time.Duration, watched *kinds) cache.NewCacheFunc {
	if inner == nil {
		inner = cache.New
	}
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c, err := inner(config, options)
		if err != nil {
			return nil, err
		}
		return &boundedCache{Cache: c, timeout: timeout, kinds: watched}, nil
	}
}

// GetInformer implements cache.Informers.
func (b *boundedCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	if isEngaging(ctx) {
		// Before there is an informer, whether there will be or not: an API server that does
		// not tell its kinds is waited for in the controllers' lock once, and from then on in
		// WaitForCacheSync, where it keeps no other cluster from being engaged.
		b.kinds.add(object)
		options = append(options, cache.BlockUntilSynced(false))
	}
	return b.Cache.GetInformer(ctx, object, options...)
}

// WaitForCacheSync implements cache.Informers.
func (b *boundedCache) WaitForCacheSync(ctx context.Context) bool {
	if isEngaging(ctx) {
		return ctx.Err() == nil
	}
	for _, object := range b.kinds.all() {
		if _, err := b.Cache.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			b.lock.Lock()
			b.err = fmt.Errorf("watch %T: %w", object, err)
			b.lock.Unlock()
			return false
		}
	}
	return b.Cache.WaitForCacheSync(ctx)
}

// failure returns why WaitForCacheSync did not wait.
func (b *boundedCache) failure() error {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.err
}

// Get implements client.Reader.
func (b *boundedCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	ctx, cancel := b.bounded(ctx)
	defer cancel()
	return b.Cache.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (b *boundedCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	ctx, cancel := b.bounded(ctx)
	defer cancel()
	return b.Cache.List(ctx, list, options...)
}

// bounded keeps a read of a kind that can't be synced from taking a worker for good.
func (b *boundedCache) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, b.timeout)
}

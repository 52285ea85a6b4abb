// Package retry repeats what a storage could not do because etcd's leader was
// moving or gone, so that no request fails for it.
//
// A write is repeated only where that is safe, which rests on two facts. Every
// write of the storage over etcd is a transaction on one key with the condition
// that the key still has the version it was computed from (none, for a
// creation); a version passes once, so of all attempts from one version at most
// one is applied, however late. And etcd's answers are of three kinds:
//
//   - the write was refused before it was proposed, as a leader does while it
//     hands over: it was not and will not be applied, and is repeated;
//   - nothing is known, because the connection broke or the proposal got lost on
//     its way to the leader, which etcd notices after seven seconds: the write is
//     repeated too, and what the next attempt finds tells what became of it.
//     Create, GuaranteedUpdate and Delete each say how. What can't be told ends
//     with the first such error;
//   - everything else is an answer, and is passed on. So is whatever error the
//     caller's own part in a write has, such as a webhook's 429: only refusals of
//     the storage itself are repeated.
//
// Repetitions continue until the request's context ends. When etcd has not answered any request
// for longer than an election takes, requests that have written nothing end with 503 and a
// Retry-After, and writes do not begin. A watch cache that is being filled has seconds; then 429 is
// passed on, which says when to ask again. Dry runs never get here.
package retry

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// Getter returns a getter whose options make storages that repeat.
func Getter(options generic.RESTOptionsGetter) generic.RESTOptionsGetter {
	return getter{options, &outage{}}
}

type getter struct {
	generic.RESTOptionsGetter
	outage *outage
}

// GetRESTOptions returns the options of the getter below, with its storage
// wrapped.
func (g getter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	below := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, keyOf func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
		attributes storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		s, destroy, err := below(config, prefix, keyOf, newFunc, newListFunc, attributes, triggers, indexers)
		if err != nil {
			return nil, nil, fmt.Errorf("no etcd answers at %s: %w; check that it runs, --etcd-servers and the certificates for it", strings.Join(config.Transport.ServerList, ","), err)
		}
		return &store{Interface: s, codec: config.Codec, newFunc: newFunc, outage: g.outage}, destroy, nil
	}
	return options, nil
}

// store is a storage that repeats.
type store struct {
	storage.Interface
	// codec is the one that the storage below writes with.
	codec   runtime.Codec
	newFunc func() runtime.Object
	outage  *outage
}

func (s *store) call(operation, key string) call {
	return call{operation: operation, key: key, outage: s.outage}
}

// anyVersion reports whether a watch cache may answer a read, which says nothing about etcd.
func anyVersion(resourceVersion string) bool { return resourceVersion == "0" }

// Get repeats the read: reading twice does no harm.
func (s *store) Get(ctx context.Context, key string, options storage.GetOptions, into runtime.Object) error {
	c := s.call("get", key)
	c.cached = anyVersion(options.ResourceVersion)
	return c.persist(ctx, func() error {
		limited, cancel := s.outage.limit(ctx)
		defer cancel()
		return ended(ctx, limited, s.Interface.Get(limited, key, options, into))
	})
}

// GetList repeats the read, as Get does. How long one takes says nothing about etcd, so it has
// all of the request's time as long as etcd answers other reads.
func (s *store) GetList(ctx context.Context, key string, options storage.ListOptions, into runtime.Object) error {
	c := s.call("list", key)
	if c.cached = anyVersion(options.ResourceVersion); c.cached {
		return c.persist(ctx, func() error { return s.Interface.GetList(ctx, key, options, into) })
	}
	// No object has this key: names begin with a letter or a digit.
	probe := strings.TrimSuffix(key, "/") + "/-"
	if err := s.reachable(ctx, probe); err != nil {
		return err
	}
	return c.persist(ctx, func() error {
		listing, cancel := context.WithCancel(ctx)
		defer cancel()
		go s.giveUp(listing, cancel, probe)
		return ended(ctx, listing, s.Interface.GetList(listing, key, options, into))
	})
}

// giveUp cancels a list when etcd does not answer a read of one object beside it either.
func (s *store) giveUp(ctx context.Context, cancel context.CancelFunc, key string) {
	for sleep(ctx, trial) {
		if s.silent(ctx, key) != nil {
			cancel()
		}
	}
}

// Watch repeats the beginning of a watch, as Get does a read. The watch has all of the request's
// time; how long it may take to begin has nothing to do with that.
func (s *store) Watch(ctx context.Context, key string, options storage.ListOptions) (out watch.Interface, err error) {
	c := s.call("watch", key)
	c.cached = true
	err = c.persist(ctx, func() error {
		out, err = s.begin(ctx, key, options)
		return err
	})
	return out, err
}

// begin begins a watch, or gives up when etcd is asked and does not answer.
func (s *store) begin(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	lasting, cancel := context.WithCancel(ctx)
	giveUp := time.AfterFunc(s.outage.left(), cancel)
	out, err := s.Interface.Watch(lasting, key, options)
	inTime := giveUp.Stop()
	if inTime && err == nil {
		return out, nil // it ends with the request
	}
	cancel()
	switch {
	case inTime:
		return nil, err
	case err == nil: // what failed is its first event
		out.Stop()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, errSilent
}

// Create repeats a creation. When an earlier attempt is open and the key turns
// out to be taken, the UID tells by whom: each object got one of its own before
// it came here. Found with it, the creation succeeded, with the object as it is
// now; else another's came first.
//
// What remains: who deletes an object before its creation is acknowledged may
// see it created again.
func (s *store) Create(ctx context.Context, key string, object, out runtime.Object, ttl uint64) error {
	if err := s.reachable(ctx, key); err != nil {
		return err
	}
	c := s.call("create", key)
	return c.persist(ctx, func() error {
		c.proposed = true
		err := s.Interface.Create(ctx, key, object, out, ttl)
		if c.open == nil || !storage.IsExist(err) {
			return err
		}
		found := s.newFunc()
		if err := s.Interface.Get(ctx, key, storage.GetOptions{}, found); err != nil {
			return err
		}
		if uid(found) != uid(object) {
			c.open = nil
			return err
		}
		return assign(out, found)
	})
}

// uid returns the UID of an object, which every stored object has.
func uid(object runtime.Object) types.UID {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return accessor.GetUID()
}

// assign sets what a caller wants to get back; a nil out wants nothing.
func assign(out, object runtime.Object) error {
	if out == nil {
		return nil
	}
	target, err := conversion.EnforcePtr(out)
	if err != nil {
		return err
	}
	target.Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
	return nil
}

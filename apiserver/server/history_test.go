package server

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// history keeps objects with all their revisions, as etcd with its watch cache does: lists
// of one revision, pages, and watches from one. Several servers may share it.
type history struct {
	storage.Interface
	mu       sync.Mutex
	revision uint64
	log      []change
	changed  chan struct{}
	// lag is how many revisions a read of any revision may be behind.
	lag uint64
	// listing is called before each list, if it is not nil.
	listing func(key string, of storage.SelectionPredicate)
	// reading is called before each read of one object, if it is not nil.
	reading func(key string)
	// reported is how many events watches have reported.
	reported atomic.Int64
}

// change is one revision of one key; a nil object is a deletion.
type change struct {
	revision     uint64
	key          string
	before, then runtime.Object
}

func newHistory() *history { return &history{revision: 1, changed: make(chan struct{})} }

// view is a storage of one kind of objects in a history.
type view struct {
	*history
	newFunc func() runtime.Object
}

// GetRESTOptions leads to it.
func (h *history) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{Config: storagebackend.Config{Codec: codecs.LegacyCodec(v1beta1.SchemeGroupVersion)}}, ResourcePrefix: resource.Resource,
		Decorator: func(_ *storagebackend.ConfigForResource, _ string, _ func(runtime.Object) (string, error), newFunc, _ func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return view{h, newFunc}, func() {}, nil
		},
	}, nil
}

func (*history) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (*history) ReadinessCheck() error { return nil }

// RequestWatchProgress does nothing, as that of memory.
func (*history) RequestWatchProgress(context.Context) error { return nil }

// clear forgets everything.
func (h *history) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = nil
	h.revision++
}

// at returns what is stored under a prefix, sorted by key, at a revision.
func (h *history) at(prefix string, revision uint64) (keys []string, objects map[string]runtime.Object) {
	objects = map[string]runtime.Object{}
	for _, c := range h.log {
		if c.revision > revision || !strings.HasPrefix(c.key, prefix) {
			continue
		}
		if delete(objects, c.key); c.then != nil {
			objects[c.key] = c.then
		}
	}
	for key := range objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, objects
}

func (h *history) now(key string) runtime.Object {
	for _, c := range slices.Backward(h.log) {
		if c.key == key {
			return c.then
		}
	}
	return nil
}

// put stores an object, or deletes it when it is nil.
func (h *history) put(key string, object, out runtime.Object) error {
	h.revision++
	c := change{revision: h.revision, key: key, before: h.now(key)}
	if object != nil {
		c.then = object.DeepCopyObject()
		if err := h.Versioner().UpdateObject(c.then, h.revision); err != nil {
			return err
		}
		copyTo(out, c.then)
	}
	h.log = append(h.log, c)
	close(h.changed)
	h.changed = make(chan struct{})
	return nil
}

func (h *history) Create(_ context.Context, key string, object, out runtime.Object, _ uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now(key) != nil {
		return storage.NewKeyExistsError(key, 0)
	}
	return h.put(key, object, out)
}

func (h *history) Get(_ context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	if h.reading != nil {
		h.reading(key)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.now(key)
	if options.ResourceVersion != "" {
		_, objects := h.at(key, h.revision-min(h.lag, h.revision-1))
		found = objects[key]
	}
	if found == nil && options.IgnoreNotFound {
		return runtime.SetZeroValue(out)
	}
	if found == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	copyTo(out, found)
	return nil
}

func (h *history) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions, validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	for {
		h.mu.Lock()
		found := h.now(key)
		h.mu.Unlock()
		if found == nil {
			return storage.NewKeyNotFoundError(key, 0)
		}
		if err := preconditions.Check(key, found); err != nil {
			return err
		}
		if err := validate(ctx, found.DeepCopyObject()); err != nil {
			return err
		}
		if done, err := h.swap(key, found, nil, nil); done || err != nil {
			copyTo(out, found)
			return err
		}
	}
}

// swap stores an object in place of another, if that is still there.
func (h *history) swap(key string, was, object, out runtime.Object) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now(key) != was {
		return false, nil
	}
	return true, h.put(key, object, out)
}

func (h view) GuaranteedUpdate(_ context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions, try storage.UpdateFunc, _ runtime.Object) error {
	for {
		h.mu.Lock()
		found := h.now(key)
		h.mu.Unlock()
		existing, of := h.newFunc(), storage.ResponseMeta{}
		switch {
		case found != nil:
			existing = found.DeepCopyObject()
			of.ResourceVersion, _ = h.Versioner().ObjectResourceVersion(found)
		case !ignoreNotFound:
			return storage.NewKeyNotFoundError(key, 0)
		}
		if err := preconditions.Check(key, existing); err != nil {
			return err
		}
		updated, _, err := try(existing, of)
		if err != nil {
			return err
		}
		if done, err := h.swap(key, found, updated, out); done || err != nil {
			return err
		}
	}
}

// GetList returns a page of a revision.
func (h *history) GetList(_ context.Context, key string, options storage.ListOptions, out runtime.Object) error {
	if h.listing != nil {
		h.listing(key, options.Predicate)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	prefix := key
	if options.Recursive {
		prefix = strings.TrimSuffix(key, "/") + "/"
	}
	revision, from := h.revision, ""
	p := options.Predicate
	switch {
	case p.Continue != "":
		start, version, err := storage.DecodeContinue(p.Continue, prefix)
		if err != nil {
			return err
		}
		revision, from = uint64(version), start
	case options.ResourceVersionMatch == metav1.ResourceVersionMatchExact,
		options.ResourceVersionMatch == "" && p.Limit > 0 && options.ResourceVersion != "" && options.ResourceVersion != "0":
		revision, _ = h.Versioner().ParseResourceVersion(options.ResourceVersion)
	case options.ResourceVersion != "":
		asked, _ := h.Versioner().ParseResourceVersion(options.ResourceVersion)
		revision = max(asked, revision-min(h.lag, revision-1))
	}
	keys, objects := h.at(prefix, revision)
	var items []runtime.Object
	token, last := "", ""
	for _, k := range keys {
		if k < from || !options.Recursive && k != key {
			continue
		}
		if p.Limit > 0 && int64(len(items)) >= p.Limit {
			token, _ = storage.EncodeContinue(last+"\x00", prefix, int64(revision))
			break
		}
		matches, err := p.Matches(objects[k])
		if err != nil {
			return err
		}
		if last = k; matches {
			items = append(items, objects[k].DeepCopyObject())
		}
	}
	var left *int64
	if token != "" && p.Empty() {
		left = new(int64)
	}
	if err := meta.SetList(out, items); err != nil {
		return err
	}
	return h.Versioner().UpdateList(out, revision, token, left)
}

// Watch reports what was changed since a revision, and first what there is if none is given.
func (h *history) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	if !options.Recursive {
		return nil, errors.New("watches of one object are not made here")
	}
	since, err := h.Versioner().ParseResourceVersion(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan watch.Event)
	deliver := func(kind watch.EventType, object runtime.Object, revision uint64) bool {
		object = object.DeepCopyObject()
		if err := h.Versioner().UpdateObject(object, revision); err != nil {
			panic(err)
		}
		select {
		case events <- watch.Event{Type: kind, Object: object}:
			h.reported.Add(1)
			return true
		case <-ctx.Done():
			return false
		}
	}
	initial := since == 0 || options.SendInitialEvents != nil && *options.SendInitialEvents
	go func() {
		defer close(events)
		prefix := strings.TrimSuffix(key, "/") + "/"
		if initial {
			h.mu.Lock()
			since = h.revision
			keys, objects := h.at(prefix, since)
			h.mu.Unlock()
			for _, k := range keys {
				version, _ := h.Versioner().ObjectResourceVersion(objects[k])
				if ok, _ := options.Predicate.Matches(objects[k]); ok && !deliver(watch.Added, objects[k], version) {
					return
				}
			}
		}
		for {
			h.mu.Lock()
			log, changed := h.log, h.changed
			h.mu.Unlock()
			for _, c := range log {
				if c.revision <= since || !strings.HasPrefix(c.key, prefix) {
					continue
				}
				since = c.revision
				before, then := matched(options.Predicate, c.before), matched(options.Predicate, c.then)
				kind, object := watch.Modified, c.then
				switch {
				case !before && !then:
					continue
				case !before:
					kind = watch.Added
				case !then:
					kind, object = watch.Deleted, c.before
				}
				if !deliver(kind, object, c.revision) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return stoppable{events, cancel}, nil
}

func matched(p storage.SelectionPredicate, object runtime.Object) bool {
	if object == nil || reflect.ValueOf(object).IsNil() {
		return false
	}
	ok, err := p.Matches(object)
	return ok && err == nil
}

// stoppable is a watch that a function ends.
type stoppable struct {
	events chan watch.Event
	stop   func()
}

func (s stoppable) ResultChan() <-chan watch.Event { return s.events }

func (s stoppable) Stop() { s.stop() }

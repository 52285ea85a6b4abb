package retry

import (
	"bytes"
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/install"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
)

var codec = func() runtime.Codec {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion)
}()

// faulty is a storage of one key that works as the one over etcd does: writes
// have the current version as their condition, and what conflicts is computed
// anew. Each transaction goes as the script says.
type faulty struct {
	storage.Interface
	script []fault

	transactions int
	version      uint64
	data         []byte // nil when there is nothing
	modified     uint64 // the version of data
	history      []change
	late         func()
	// cached is what a cache would suggest, and forgetful makes it forget.
	cached    *clusterregistry.Cluster
	forgetful bool
	// blocked says that a change was awaited that nobody made.
	blocked bool
}

// fault is what happens to one transaction.
type fault struct {
	// before happens between the reading and the transaction.
	before func(*faulty)
	err    error
	// applied says that the transaction is carried out all the same; late, that
	// this happens right before the next one.
	applied, late bool
}

type change struct {
	version uint64
	data    []byte
}

func (f *faulty) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

// put is a transaction: it makes data of what has the given version.
func (f *faulty) put(condition uint64, data []byte) (bool, error) {
	if f.late != nil {
		f.late()
		f.late = nil
	}
	var now fault
	if f.transactions < len(f.script) {
		now = f.script[f.transactions]
	}
	f.transactions++
	if now.before != nil {
		now.before(f)
	}
	switch {
	case now.late:
		f.late = func() { f.apply(condition, data) }
		return false, now.err
	case now.err != nil && !now.applied:
		return false, now.err
	}
	return f.apply(condition, data), now.err
}

func (f *faulty) apply(condition uint64, data []byte) bool {
	if condition != f.modified {
		return false
	}
	f.version++
	f.data, f.modified = data, f.version
	if data == nil {
		f.modified = 0
	}
	f.history = append(f.history, change{f.version, data})
	return true
}

// another writes as another client would, around the script.
func (f *faulty) another(c *clusterregistry.Cluster) {
	if c == nil {
		f.apply(f.modified, nil)
		return
	}
	f.apply(f.modified, encode(c))
}

func encode(c *clusterregistry.Cluster) []byte {
	c = c.DeepCopy()
	c.ResourceVersion = ""
	data, err := runtime.Encode(codec, c)
	utilruntime.Must(err)
	return data
}

func decode(data []byte, version uint64) *clusterregistry.Cluster {
	c := &clusterregistry.Cluster{}
	if data != nil {
		utilruntime.Must(runtime.DecodeInto(codec, data, c))
		c.ResourceVersion = strconv.FormatUint(version, 10)
	}
	return c
}

func (f *faulty) Get(_ context.Context, key string, _ storage.GetOptions, into runtime.Object) error {
	if f.data == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	*into.(*clusterregistry.Cluster) = *decode(f.data, f.modified)
	return nil
}

func (f *faulty) Create(_ context.Context, key string, object, out runtime.Object, _ uint64) error {
	data := encode(object.(*clusterregistry.Cluster))
	ok, err := f.put(0, data)
	if err != nil {
		return err
	}
	if !ok {
		return storage.NewKeyExistsError(key, 0)
	}
	*out.(*clusterregistry.Cluster) = *decode(data, f.version)
	return nil
}

func (f *faulty) GuaranteedUpdate(_ context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions, try storage.UpdateFunc, _ runtime.Object) error {
	current, version, fresh := f.read()
	for {
		if version == 0 && !ignoreNotFound {
			return storage.NewKeyNotFoundError(key, 0)
		}
		err := preconditions.Check(key, current)
		var wanted runtime.Object
		if err == nil {
			wanted, _, err = try(current, storage.ResponseMeta{ResourceVersion: version})
		}
		if err != nil && fresh {
			return err
		}
		if err == nil {
			data := encode(wanted.(*clusterregistry.Cluster))
			if fresh && bytes.Equal(data, f.data) {
				*out.(*clusterregistry.Cluster) = *decode(data, version)
				return nil
			}
			ok, err := f.put(version, data)
			if err != nil {
				return err
			}
			if ok {
				*out.(*clusterregistry.Cluster) = *decode(data, f.version)
				return nil
			}
		}
		current, version, fresh = decode(f.data, f.modified), f.modified, true
	}
}

func (f *faulty) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions, validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	current, version, fresh := f.read()
	for {
		if version == 0 {
			return storage.NewKeyNotFoundError(key, 0)
		}
		err := preconditions.Check(key, current)
		if err == nil {
			err = validate(ctx, current)
		}
		if err != nil && fresh {
			return err
		}
		if err == nil {
			ok, err := f.put(version, nil)
			if err != nil {
				return err
			}
			if ok {
				*out.(*clusterregistry.Cluster) = *current
				return nil
			}
		}
		current, version, fresh = decode(f.data, f.modified), f.modified, true
	}
}

// read returns what an attempt starts from, and whether that is read from the
// storage itself.
func (f *faulty) read() (*clusterregistry.Cluster, uint64, bool) {
	if f.cached == nil {
		return decode(f.data, f.modified), f.modified, true
	}
	version, err := f.Versioner().ObjectResourceVersion(f.cached)
	utilruntime.Must(err)
	return f.cached.DeepCopy(), version, false
}

func (f *faulty) Watch(_ context.Context, _ string, options storage.ListOptions) (watch.Interface, error) {
	if f.forgetful {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	from, err := strconv.ParseUint(options.ResourceVersion, 10, 64)
	if err != nil {
		return nil, err
	}
	events := make(chan watch.Event, len(f.history)+1)
	events <- watch.Event{Type: watch.Bookmark, Object: &clusterregistry.Cluster{}}
	for _, c := range f.history {
		switch {
		case c.version <= from:
		case c.data == nil:
			events <- watch.Event{Type: watch.Deleted, Object: &clusterregistry.Cluster{}}
		default:
			events <- watch.Event{Type: watch.Modified, Object: decode(c.data, c.version)}
		}
	}
	f.blocked = f.blocked || from >= f.version
	close(events)
	return watch.NewProxyWatcher(events), nil
}

// Package lock lets one request at a time, of all servers of a registry, decide
// on a value that must be unique, such as a cluster's id. A lock is a key in
// etcd. Who holds it looks for the value, with a read that is not older than the
// lock, and writes the object; then the lock goes. So nothing has to be kept in
// step with the objects: the objects alone say which values are taken.
//
// The lock of a server that dies goes automatically, through a lease that outlives
// the longest write that its request may have sent.
//
// A lock is no fence: etcd does not look for it when it takes the write. A server
// that stands still for longer than the lease, as a computer does that is
// suspended, writes after others have had the lock. So Release reports whether it
// was held all the time; who hears that it was not must not tell anyone that
// the write has succeeded before it has looked again.
package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// late is how long after its request has ended a write may still be applied:
	// etcd gives a proposal up after seconds.
	late = time.Minute
	// unlimited stands for the time that is left to a request without a deadline.
	unlimited = time.Minute
	// patience is how long a request waits for another's lock.
	patience = 5 * time.Second
)

// ErrHeld says that another request holds a lock for long: most likely its
// server died, and then the lock goes within two minutes or so.
var ErrHeld = errors.New("another request holds the lock")

// resource is where the locks are, beside the clusters.
var resource = clusterregistry.Resource(contract.LockResource)

// Getter returns a getter whose options for locks have no watch cache and an
// encoding of their own. Other resources are left as they are.
func Getter(options generic.RESTOptionsGetter) generic.RESTOptionsGetter { return getter{options} }

type getter struct{ generic.RESTOptionsGetter }

// GetRESTOptions returns the options of the getter below, changed for locks.
func (g getter) GetRESTOptions(of schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(of, example)
	if err != nil || of != resource {
		return options, err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	serializer := protobuf.NewSerializer(scheme, scheme)
	config := *options.StorageConfig
	config.Codec = runtime.NewCodec(serializer, serializer)
	options.StorageConfig = &config
	options.Decorator = generic.UndecoratedStorage
	return options, nil
}

// Locks are the locks of a registry.
type Locks struct {
	storage storage.Interface
	prefix  string
	clock   func() reading
	// Destroy ends the connection to etcd.
	Destroy func()
}

// New returns the locks in the etcd that the options, made with Getter, lead to.
func New(options generic.RESTOptionsGetter) (*Locks, error) {
	s, prefix, destroy, err := Open(options)
	if err != nil {
		return nil, err
	}
	return &Locks{s, prefix, read, destroy}, nil
}

// Open returns the storage of the locks, of metadata alone, for what else the servers tell
// each other for a while: no client lists it, and what a backup has of it counts for
// nothing. Keys of another kind are in a directory of their own, as no id of a cluster
// has a slash.
func Open(options generic.RESTOptionsGetter) (s storage.Interface, prefix string, destroy func(), err error) {
	// The options are those of a kind of the registry, but for what Getter replaces.
	o, err := options.GetRESTOptions(resource, &clusterregistry.Cluster{})
	if err != nil {
		return nil, "", nil, err
	}
	prefix = "/" + strings.Trim(o.ResourcePrefix, "/")
	keyOf := func(object runtime.Object) (string, error) {
		return prefix + "/" + object.(*metav1.PartialObjectMetadata).Name, nil
	}
	s, destroy, err = o.Decorator(o.StorageConfig, prefix, keyOf, newLock, func() runtime.Object { return &metav1.PartialObjectMetadataList{} }, nil, nil, nil)
	return s, prefix, destroy, err
}

func newLock() runtime.Object { return &metav1.PartialObjectMetadata{} }

// Lock is a lock that is held.
type Lock struct {
	locks *Locks
	name  string
	uid   types.UID
	// stored is the key's object as etcd has taken it.
	stored *metav1.PartialObjectMetadata
	// taken is when it was asked for, and least how long its lease lasts from then on.
	taken reading
	least time.Duration
}

// Version returns etcd's revision of the lock: what is read at it, or at a later one,
// shows what all have written who held the lock before. Empty means that it is not known.
func (h *Lock) Version() string { return h.stored.ResourceVersion }

// Take takes the lock of a name, which is part of a key in etcd. It waits a
// while for another that holds it, and then returns ErrHeld.
func (l *Locks) Take(ctx context.Context, name string) (*Lock, error) {
	left := unlimited
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uuid.NewUUID(), CreationTimestamp: metav1.Now()}}
	object.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	held := &Lock{locks: l, name: name, uid: object.UID, stored: &metav1.PartialObjectMetadata{}}
	err := patiently(ctx, func() (bool, error) {
		// Not the patient context: a creation that it cuts off would be in doubt.
		held.taken, held.least = l.clock(), left+late-time.Second // a lease has whole seconds
		err := l.storage.Create(ctx, l.key(name), object.DeepCopy(), held.stored, uint64((left+late)/time.Second))
		switch {
		case err == nil:
			return true, nil
		case storage.IsExist(err):
			return false, nil
		}
		return false, fmt.Errorf("take the lock of %s: %w", name, err)
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// patiently tries until it is done or fails, and returns ErrHeld when that takes too long.
func patiently(ctx context.Context, try func() (done bool, err error)) error {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 0.5, Steps: 10, Cap: 250 * time.Millisecond}
	for {
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-patient.Done():
			return ErrHeld
		case <-time.After(backoff.Step()):
		}
	}
}

// Release gives the lock up, and reports whether it was held until then: what was
// written before, no other request that takes it can have overlooked. The request
// that held it may have ended. When etcd refuses, the lock goes with its lease,
// and was held if that can't have ended yet.
func (h *Lock) Release(ctx context.Context) (held bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	mine := storage.NewUIDPreconditions(string(h.uid))
	// The key is deleted in the version that was written, without a look at it before: nothing
	// changes it. When it is no longer there, or another's, etcd says so.
	var written runtime.Object
	if h.Version() != "" {
		written = h.stored.DeepCopy()
	}
	err := h.locks.storage.Delete(ctx, h.locks.key(h.name), newLock(), mine, storage.ValidateAllObjectFunc, written, storage.DeleteOptions{})
	switch {
	case err == nil:
		return true
	case storage.IsNotFound(err), storage.IsInvalidObj(err):
		return false
	}
	klog.ErrorS(err, "A lock is released only when its lease expires", "lock", h.name)
	return h.taken.within(h.least, h.locks.clock())
}

func (l *Locks) key(name string) string { return l.prefix + "/" + name }

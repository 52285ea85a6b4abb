package visibility

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/apiserver/storage/lock"
)

const (
	// directory is where the records are, beside the locks. No id of a cluster has a slash.
	directory = "views/"
	// lasts is how long a record stays that no server needs. What a client has read before
	// it went can't be continued.
	lasts = 30 * time.Minute
	// few is of how many callers the records are read one by one, and severally so many at
	// a time. For more of them all records are read at once, whosever they are: some MB, where
	// there are 10,000.
	few, severally = 64, 8
	// flightTime is how long reading records may take.
	flightTime = 10 * time.Second
	// The annotations of a record.
	setsAnnotation  = "sets"
	sinceAnnotation = "since"
)

// errRaced says that another request has written a record.
var errRaced = errors.New("another request has written the record")

// record is what etcd keeps of a caller.
type record struct {
	// sets is the hash of what it sees, and since the revision at which that last changed.
	sets  string
	since uint64
	// version is that of the record, and written when it last was.
	version uint64
	written time.Time
}

// Records are what the servers of a registry keep of callers in etcd.
type Records struct {
	storage storage.Interface
	prefix  string
	// Destroy ends the connection to etcd.
	Destroy func()

	mu sync.Mutex
	// next is the read of records that has not begun yet, and flying says that one has.
	next   *flight
	flying bool
}

// flight is one read of the records of all who asked before it began.
type flight struct {
	done    chan struct{}
	callers sets.Set[string]
	records map[string]record
	err     error
}

// NewRecords returns the records in the etcd that the options, made with lock.Getter, lead to.
func NewRecords(options generic.RESTOptionsGetter) (*Records, error) {
	s, prefix, destroy, err := lock.Open(options)
	if err != nil {
		return nil, err
	}
	return &Records{storage: s, prefix: prefix, Destroy: destroy}, nil
}

func (r *Records) key(caller string) string { return r.prefix + "/" + directory + caller }

// of reads a record from its object.
func (r *Records) of(object *metav1.PartialObjectMetadata) (record, error) {
	version, err := r.storage.Versioner().ObjectResourceVersion(object)
	if err != nil {
		return record{}, err
	}
	out := record{sets: object.Annotations[setsAnnotation], since: version, version: version, written: object.CreationTimestamp.Time}
	if since := object.Annotations[sinceAnnotation]; since != "" {
		out.since, err = strconv.ParseUint(since, 10, 64)
	}
	return out, err
}

// object returns what is stored of a record, now. A record whose sets have just changed
// says nothing of since: it is the revision of the object itself.
func object(caller string, rec record) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: caller, UID: uuid.NewUUID(), CreationTimestamp: metav1.Now(), Annotations: map[string]string{setsAnnotation: rec.sets}}}
	out.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	if rec.since != 0 {
		out.Annotations[sinceAnnotation] = strconv.FormatUint(rec.since, 10)
	}
	return out
}

// read returns the record of a caller, by etcd's latest state.
func (r *Records) read(ctx context.Context, caller string) (rec record, found bool, err error) {
	stored := &metav1.PartialObjectMetadata{}
	err = r.storage.Get(ctx, r.key(caller), storage.GetOptions{}, stored)
	if storage.IsNotFound(err) {
		return record{}, false, nil
	}
	if err == nil {
		rec, err = r.of(stored)
	}
	if err != nil {
		return record{}, false, fmt.Errorf("read the record of the caller's ClusterSets: %w", err)
	}
	return rec, true, nil
}

// create writes the record of a caller that has none.
func (r *Records) create(ctx context.Context, caller, sets string) (record, error) {
	stored := &metav1.PartialObjectMetadata{}
	err := r.storage.Create(ctx, r.key(caller), object(caller, record{sets: sets}), stored, uint64(lasts/time.Second))
	if storage.IsExist(err) {
		return record{}, errRaced
	}
	if err != nil {
		return record{}, fmt.Errorf("record the caller's ClusterSets: %w", err)
	}
	return r.of(stored)
}

// replace writes a record in place of the one that was read.
func (r *Records) replace(ctx context.Context, caller string, was, rec record) (record, error) {
	stored, ttl := &metav1.PartialObjectMetadata{}, uint64(lasts/time.Second)
	err := r.storage.GuaranteedUpdate(ctx, r.key(caller), stored, false, nil, func(existing runtime.Object, meta storage.ResponseMeta) (runtime.Object, *uint64, error) {
		if meta.ResourceVersion != was.version {
			return nil, nil, errRaced
		}
		return object(caller, rec), &ttl, nil
	}, nil)
	switch {
	case errors.Is(err, errRaced) || storage.IsNotFound(err):
		return record{}, errRaced
	case err != nil:
		return record{}, fmt.Errorf("record the caller's ClusterSets: %w", err)
	}
	return r.of(stored)
}

// renew keeps a record from going with its lease. Its sets have not changed, and nothing that
// is read waits for it: while etcd takes no writes, the record lasts for what is left of its
// lease.
func (r *Records) renew(ctx context.Context, caller string, rec record) {
	if age := time.Since(rec.written); age < lasts/2 && age > -lasts/2 {
		return
	}
	if _, err := r.replace(ctx, caller, rec, record{sets: rec.sets, since: rec.since}); err != nil && !errors.Is(err, errRaced) {
		klog.V(2).InfoS("The record of a caller's ClusterSets was not renewed", "err", err)
	}
}

// latest returns the record of a caller, by a read that begins after it was called. Those
// who wait for the same read share it, so that however many events and lists a server has
// to confirm, it has one such read at a time.
func (r *Records) latest(ctx context.Context, caller string) (rec record, found bool, err error) {
	r.mu.Lock()
	if r.next == nil {
		r.next = &flight{done: make(chan struct{}), callers: sets.New[string]()}
	}
	mine := r.next
	mine.callers.Insert(caller)
	if !r.flying {
		r.flying = true
		go r.fly()
	}
	r.mu.Unlock()
	select {
	case <-mine.done:
		rec, found = mine.records[caller]
		return rec, found, mine.err
	case <-ctx.Done():
		return record{}, false, ctx.Err()
	}
}

// fly reads records until no one waits for them.
func (r *Records) fly() {
	for {
		r.mu.Lock()
		now := r.next
		r.next = nil
		r.flying = now != nil
		r.mu.Unlock()
		if now == nil {
			return
		}
		now.records, now.err = r.gather(now.callers)
		close(now.done)
	}
}

// gather returns the records of some callers, and maybe those of others.
func (r *Records) gather(callers sets.Set[string]) (map[string]record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), flightTime)
	defer cancel()
	if len(callers) > few {
		return r.list(ctx)
	}
	var mu sync.Mutex
	out := make(map[string]record, len(callers))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(severally)
	for caller := range callers {
		group.Go(func() error {
			rec, found, err := r.read(reading, caller)
			if found {
				mu.Lock()
				defer mu.Unlock()
				out[caller] = rec
			}
			return err
		})
	}
	return out, group.Wait()
}

// list returns the records of all callers.
func (r *Records) list(ctx context.Context) (map[string]record, error) {
	stored := &metav1.PartialObjectMetadataList{}
	if err := r.storage.GetList(ctx, r.key(""), storage.ListOptions{Recursive: true, Predicate: storage.Everything}, stored); err != nil {
		return nil, fmt.Errorf("read the records of callers' ClusterSets: %w", err)
	}
	out := make(map[string]record, len(stored.Items))
	for i := range stored.Items {
		rec, err := r.of(&stored.Items[i])
		if err != nil {
			return nil, err
		}
		out[stored.Items[i].Name] = rec
	}
	return out, nil
}

package retry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

var (
	// errApplied ends an attempt that finds an earlier one applied.
	errApplied = errors.New("an earlier attempt was applied")
	// errStale makes the storage read what it took from a cache.
	errStale = errors.New("the state is older than one seen before")
)

// GuaranteedUpdate repeats an update. While attempts are open, the state that
// the next one starts from tells what became of them:
//
//   - it has the version they were made on: none is applied. Should one be
//     applied later, the repetition is refused, and the storage asks again;
//   - it is what an attempt wrote: that one was applied. No one can tell it from
//     the same bytes written by another, but they are what was asked for;
//   - otherwise the version they were made on has passed, and only the write
//     that came right after it can have been one of them. The watch cache knows
//     that write; where it has forgotten, the outcome stays unknown.
//
// For an update that creates, the UID tells, as for Create.
func (s *store) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object) error {
	if err := s.reachable(ctx, key); err != nil {
		return err
	}
	u := &update{call: s.call("update", key), store: s, preconditions: preconditions, try: tryUpdate}
	return u.persist(ctx, func() error {
		// The preconditions are checked in next: an attempt that was applied
		// would not meet them again.
		err := s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, nil, func(existing runtime.Object, m storage.ResponseMeta) (runtime.Object, *uint64, error) {
			return u.next(ctx, existing, m)
		}, cached)
		cached = nil // it is spent: the update was made in it
		if u.open != nil && storage.IsNotFound(err) {
			u.proposed = false
			if settled := u.settle(ctx, 0); settled != nil {
				err = settled
			}
		}
		if errors.Is(err, errApplied) {
			return assign(destination, u.applied)
		}
		if u.proposed && classify(err) == unknown {
			return u.keep(err)
		}
		return err
	})
}

// update is an update with all its attempts.
type update struct {
	call
	*store
	preconditions *storage.Preconditions
	try           storage.UpdateFunc

	// last is what the last attempt wanted to write, and base the version that
	// it was made on, which all open attempts share.
	last runtime.Object
	base uint64
	// written is what the open attempts may have written.
	written []version
	// applied is what one of them did write.
	applied runtime.Object
}

// version is an object as it is stored.
type version struct {
	uid  types.UID
	data []byte
}

// next is the function that the storage calls to make each new version.
func (u *update) next(ctx context.Context, existing runtime.Object, m storage.ResponseMeta) (runtime.Object, *uint64, error) {
	u.proposed, u.refused = false, nil
	if u.open != nil && m.ResourceVersion != u.base {
		mine, err := u.wrote(existing)
		if err != nil {
			return nil, nil, err
		}
		if mine {
			// Nothing is left to change, and the storage reports what is there.
			return existing, nil, nil
		}
		if err := u.settle(ctx, m.ResourceVersion); err != nil {
			return nil, nil, err
		}
	}
	if err := u.preconditions.Check(u.key, existing); err != nil {
		return nil, nil, err
	}
	out, ttl, err := u.try(existing, m)
	if u.ask(err) == nil {
		u.proposed, u.last, u.base = true, out, m.ResourceVersion
	}
	return out, ttl, err
}

// keep remembers what the last attempt may have written, and returns why.
func (u *update) keep(why error) error {
	data, err := u.encode(u.last)
	if err != nil {
		return err
	}
	u.written = append(u.written, version{uid(u.last), data})
	return why
}

// wrote reports whether an open attempt made an object what it is.
func (u *update) wrote(object runtime.Object) (bool, error) {
	data, err := u.encode(object)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(u.written, func(v version) bool {
		if u.base == 0 {
			return v.uid == uid(object)
		}
		return bytes.Equal(v.data, data)
	}), nil
}

// settle finds out about the open attempts when the current version is neither
// the one that they were made on nor theirs. It returns nil when none of them
// was applied.
func (u *update) settle(ctx context.Context, current uint64) error {
	if current != 0 && current < u.base {
		return errStale
	}
	if u.base == 0 {
		return errors.New("it is not known who created the object")
	}
	first, err := u.after(ctx, u.base)
	if err != nil {
		return err
	}
	if first != nil {
		mine, err := u.wrote(first)
		if err != nil {
			return err
		}
		if mine {
			u.applied = first
			return errApplied
		}
	}
	u.open, u.written = nil, nil
	return nil
}

// after returns what the first change after a version made of the key: nil when
// that removed it.
func (u *update) after(ctx context.Context, base uint64) (runtime.Object, error) {
	w, err := u.Watch(ctx, u.key, storage.ListOptions{ResourceVersion: strconv.FormatUint(base, 10), Predicate: storage.Everything})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		switch event.Type {
		case watch.Bookmark:
		case watch.Error:
			return nil, apierrors.FromObject(event.Object)
		case watch.Deleted:
			return nil, nil
		case watch.Added, watch.Modified:
			if shared, ok := event.Object.(runtime.CacheableObject); ok {
				return shared.GetObject(), nil
			}
			return event.Object, nil
		}
	}
	return nil, fmt.Errorf("the watch from version %d ended", base)
}

// encode returns an object as it is stored.
func (s *store) encode(object runtime.Object) ([]byte, error) {
	object = object.DeepCopyObject()
	if err := s.Versioner().PrepareObjectForStorage(object); err != nil {
		return nil, err
	}
	return runtime.Encode(s.codec, object)
}

package lock

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/storage"
)

// A name can be locked for many at a time or for one alone, by keys that no id of a
// cluster can have: the one who wants it alone writes a key, and then waits until no
// shared one is left; those who share write theirs, and then look for that key. Each
// writes before it looks, and both looks are at etcd's latest state, so that never both
// overlook the other.
const (
	shared = "shared/"
	alone  = "alone/"
)

// Share takes a lock of a name that others may share, and no one has alone meanwhile. It
// waits a while for one who has, and then returns ErrHeld.
func (l *Locks) Share(ctx context.Context, name string) (held *Lock, err error) {
	err = patiently(ctx, func() (bool, error) {
		if held, err = l.Take(ctx, shared+name+"/"+string(uuid.NewUUID())); err != nil {
			return false, err
		}
		err := l.storage.Get(ctx, l.key(alone+name), storage.GetOptions{}, newLock())
		if storage.IsNotFound(err) {
			return true, nil
		}
		held.Release(ctx)
		if err != nil {
			return false, fmt.Errorf("look whether another has the lock of %s alone: %w", name, err)
		}
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// Exclude takes the lock of a name that no one shares. It waits a while for those who do,
// and then returns ErrHeld.
func (l *Locks) Exclude(ctx context.Context, name string) (*Lock, error) {
	held, err := l.Take(ctx, alone+name)
	if err != nil {
		return nil, err
	}
	err = patiently(ctx, func() (bool, error) {
		list := &metav1.PartialObjectMetadataList{}
		if err := l.storage.GetList(ctx, l.key(shared+name), storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list); err != nil {
			return false, fmt.Errorf("look who shares the lock of %s: %w", name, err)
		}
		return len(list.Items) == 0, nil
	})
	if err != nil {
		held.Release(ctx)
		return nil, err
	}
	return held, nil
}

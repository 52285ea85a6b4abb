package lock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// etcd is one that takes every lock and answers each release in one way.
type etcd struct {
	storage.Interface
	answer error
	// deleted is what it was told to delete.
	deleted runtime.Object
}

func (*etcd) Create(_ context.Context, _ string, object, out runtime.Object, _ uint64) error {
	object.(*metav1.PartialObjectMetadata).DeepCopyInto(out.(*metav1.PartialObjectMetadata))
	out.(*metav1.PartialObjectMetadata).ResourceVersion = "7"
	return nil
}

func (e *etcd) Delete(_ context.Context, _ string, _ runtime.Object, _ *storage.Preconditions, _ storage.ValidateObjectFunc, written runtime.Object, _ storage.DeleteOptions) error {
	e.deleted = written
	return e.answer
}

// TestWhetherALockWasHeld releases a lock after the machine did this and that. When
// etcd doesn't say whether the lock was held, no clock may say that it was not.
func TestWhetherALockWasHeld(t *testing.T) {
	silent, gone := errors.New("etcd is away"), storage.NewKeyNotFoundError("x", 0)
	for _, test := range []struct {
		reason        string
		answer        error
		wall, running time.Duration
		want          bool
	}{
		{"etcd says so", nil, time.Hour, time.Hour, true},
		{"etcd says that it was not", gone, 0, 0, false},
		{"at once", silent, 0, 0, true},
		{"for less than the lease", silent, 100 * time.Second, 100 * time.Second, true},
		{"for longer than the lease", silent, 3 * time.Minute, 3 * time.Minute, false},
		{"the machine was suspended for longer than the lease", silent, 3 * time.Minute, time.Second, false},
		{"the wall clock was set forward", silent, time.Hour, time.Second, false},
		{"the wall clock was set back, and the lease is over", silent, time.Second, 3 * time.Minute, false},
		{"the wall clock was set back", silent, -time.Hour, time.Second, false},
	} {
		now := read()
		store := &etcd{answer: test.answer}
		locks := &Locks{storage: store, prefix: "/clusterids", clock: func() reading { return now }}
		held, err := locks.Take(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		now.wall, now.running = now.wall.Add(test.wall), now.running+test.running
		if got := held.Release(t.Context()); got != test.want {
			t.Errorf("%s: held is %t", test.reason, got)
		}
		if written := store.deleted.(*metav1.PartialObjectMetadata); held.Version() != "7" || written.ResourceVersion != "7" || written.UID != held.uid {
			t.Errorf("%s: version %s, released %+v", test.reason, held.Version(), written)
		}
	}
}

// TestReading makes sure that the wall clock's time goes without the other one's,
// which Go would compare by.
func TestReading(t *testing.T) {
	if r := read(); strings.Contains(r.wall.String(), "m=") || r.running < 0 {
		t.Errorf("got %+v", r)
	}
}

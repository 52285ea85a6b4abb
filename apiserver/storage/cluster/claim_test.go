package cluster

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/lock"
)

// barrier lets none pass before all are there.
type barrier struct {
	missing atomic.Int32
	met     chan struct{}
}

func newBarrier(all int32) *barrier {
	b := &barrier{met: make(chan struct{})}
	b.missing.Store(all)
	return b
}

func (b *barrier) meet(ctx context.Context) error {
	if b.missing.Add(-1) == 0 {
		close(b.met)
	}
	select {
	case <-b.met:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// meeting is etcd that answers when as many ask as are expected.
type meeting struct {
	etcd
	takes, releases *barrier
}

func (m meeting) Create(ctx context.Context, _ string, _, out runtime.Object, _ uint64) error {
	out.(*metav1.PartialObjectMetadata).ResourceVersion = "7"
	return m.takes.meet(ctx)
}

// Get finds nothing: no one has a set alone.
func (meeting) Get(_ context.Context, key string, _ storage.GetOptions, _ runtime.Object) error {
	return storage.NewKeyNotFoundError(key, 0)
}

func (m meeting) Delete(ctx context.Context, _ string, _ runtime.Object, _ *storage.Preconditions, _ storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	return m.releases.meet(ctx)
}

func (meeting) RequestWatchProgress(context.Context) error { return nil }

// sharing are sets that exist.
type sharing struct{ *lock.Locks }

func (sharing) Exists(context.Context, string) (bool, error) { return true, nil }

// claimOn returns a claim whose locks are there.
func claimOn(t *testing.T, store storage.Interface) *claim {
	t.Helper()
	locks, err := lock.New(decorated{store})
	if err != nil {
		t.Fatal(err)
	}
	rest := &REST{locks: locks, sets: sharing{locks}, Store: &genericregistry.Store{
		NewListFunc: func() runtime.Object { return &clusterregistry.ClusterList{} }, DefaultQualifiedResource: clusterregistry.Resource("clusters"),
		KeyRootFunc: func(context.Context) string { return "/clusters" }, Storage: genericregistry.DryRunnableStorage{Storage: store},
	}}
	return rest.claim(nil)
}

// TestClaimsAreMadeTogether creates a cluster with an id in a set. Neither lock is answered
// before both were asked for.
func TestClaimsAreMadeTogether(t *testing.T) {
	store := meeting{takes: newBarrier(2), releases: newBarrier(2)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cluster := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: clusterregistry.ClusterSpec{ID: "one", ClusterSet: "blue"}}
	claim := claimOn(t, store)
	if err := claim.change(ctx, cluster, &clusterregistry.Cluster{}); err != nil {
		t.Fatal(err)
	}
	if claim.id.lock == nil || claim.set.lock == nil {
		t.Fatal("a lock is not held")
	}
	if err := claim.settle(ctx, cluster, true, nil); err != nil {
		t.Error(err)
	}
	if claim.id.lock != nil || claim.set.lock != nil {
		t.Error("a lock is not released")
	}
	select {
	case <-store.releases.met:
	default:
		t.Error("one lock was released after the other")
	}
}

// TestAClaimThatFails gives up what was claimed beside it.
func TestAClaimThatFails(t *testing.T) {
	other := clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other"}, Spec: clusterregistry.ClusterSpec{ID: "one"}}
	store := meeting{etcd: etcd{clusters: []clusterregistry.Cluster{other}}, takes: newBarrier(2), releases: newBarrier(1)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	claim := claimOn(t, store)
	taken := claim.change(ctx, &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "mine", UID: "mine"}, Spec: clusterregistry.ClusterSpec{ID: "one", ClusterSet: "blue"}}, &clusterregistry.Cluster{})
	if !isAnswer(taken) {
		t.Fatalf("an id that is taken: %v", taken)
	}
	if claim.id.lock != nil || claim.set.lock == nil || claim.proposed {
		t.Error("the lock of the id is held, or that of the set is not, or the store was let write")
	}
	if err := claim.settle(ctx, nil, true, taken); !isAnswer(err) || claim.set.lock != nil {
		t.Errorf("the lock of the set is held after %v", err)
	}
}

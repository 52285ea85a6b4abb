package clusterapi

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// indexed is a store that counts what is asked of all its objects, and of one name.
type indexed struct {
	cache.Indexer
	lists, looked int
}

func (i *indexed) List() []any { i.lists++; return i.Indexer.List() }

func (i *indexed) ByIndex(name, value string) ([]any, error) {
	objects, err := i.Indexer.ByIndex(name, value)
	i.looked += len(objects)
	return objects, err
}

// TestFleetIsNotWalked enters the Clusters of a large namespace: none of them has all others
// looked at, and one whose name is taken wakes those that wait for it alone.
func TestFleetIsNotWalked(t *testing.T) {
	const fleet = 300
	b := newBench(t, nil)
	for i := range fleet {
		b.see(cluster(fmt.Sprint("c", i)))
	}
	n := b.namespaces["a"]
	counted := &indexed{Indexer: n.store}
	n.store = counted
	for i := range fleet {
		if err := b.reconcile(t.Context(), types.NamespacedName{Namespace: "a", Name: fmt.Sprint("c", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if counted.lists != 0 || counted.looked != fleet {
		t.Errorf("all Clusters were listed %d times, and %d were looked at for %d", counted.lists, counted.looked, fleet)
	}
}

// TestWaiting wakes the Clusters that wait for a name, and no others.
func TestWaiting(t *testing.T) {
	b := newBench(t, nil)
	for _, name := range []string{"a", "b", "c"} {
		b.hold(t.Context(), cluster(name), hold{reason: HeldNameTaken, name: "x" + name[:1], message: "m"})
	}
	b.hold(t.Context(), cluster("c"), hold{reason: HeldNameTaken, name: "xa", message: "another"})
	b.release(types.NamespacedName{Namespace: "a", Name: "b"})
	woken := func(name string) int {
		b.wake(name)
		count := b.queue.Len()
		for range count {
			key, _ := b.queue.Get()
			b.queue.Done(key)
		}
		return count
	}
	if xa, xb, xc := woken("xa"), woken("xb"), woken("xc"); xa != 2 || xb != 0 || xc != 0 {
		t.Errorf("%d, %d and %d were woken", xa, xb, xc)
	}
}

// TestElderByIndex has the older one of two Clusters get a name, whichever comes first.
func TestElderByIndex(t *testing.T) {
	b := newBench(t, nil)
	older := cluster("east", func(c *clusterv1.Cluster) { c.CreationTimestamp = metav1.NewTime(begin.Add(-2 * time.Hour)) })
	b.see(older)
	other := newNamespace("b")
	other.store = cache.NewIndexer(cache.MetaNamespaceKeyFunc, b.indexers())
	b.namespaces["b"] = other
	younger := cluster("east", func(c *clusterv1.Cluster) { c.Namespace, c.UID = "b", "uid-b" })
	if err := other.store.Add(younger); err != nil {
		t.Fatal(err)
	}
	if rival := b.elder(younger, "east"); rival == nil || rival.UID != older.UID {
		t.Errorf("the elder of the younger one is %v", rival)
	}
	if rival := b.elder(older, "east"); rival != nil {
		t.Errorf("the elder of the older one is %v", rival)
	}
}

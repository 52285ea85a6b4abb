package selection

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/selection/decide"
)

// fleet has what selections see of the clusters of the registry. It outlives what follows
// single namespaces, so that each cluster is in memory once.
type fleet struct {
	mu    sync.Mutex
	views map[string]*decide.View
	slots map[string]int
	free  []int

	// evaluating is held by who evaluates expressions: views are not for several at once, and
	// expressions take one processor at most.
	evaluating sync.Mutex
	// turn is how long expressions are evaluated before those of other selections are: cost
	// counts steps, of which some take longer than others.
	turn time.Duration
	// kept is how many bytes are kept of what clusters are ordered by.
	kept atomic.Int64
}

// keep notes how many bytes are kept for a program, and returns how many are for all.
func (f *fleet) keep(p *program, bytes int) int64 {
	change := int64(bytes - p.kept)
	p.kept = bytes
	return f.kept.Add(change)
}

func newFleet() *fleet {
	return &fleet{views: map[string]*decide.View{}, slots: map[string]int{}, turn: 2 * time.Second}
}

// follow has the fleet follow an informer, and each called at changes that selections see. The
// fleet has what the informer had at first once that is synced.
func (f *fleet) follow(informer cache.SharedIndexInformer, each func()) (cache.InformerSynced, error) {
	changed := func(object any) {
		if f.put(object.(*v1beta1.Cluster)) {
			each()
		}
	}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, now any) { changed(now) },
		DeleteFunc: func(object any) {
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
			if err == nil && f.drop(key) {
				each()
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return registration.HasSynced, nil
}

// put takes in a cluster, and reports whether selections see a change.
func (f *fleet) put(cluster *v1beta1.Cluster) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	slot, known := f.slots[cluster.Name]
	if !known {
		slot = len(f.slots)
		if last := len(f.free) - 1; last >= 0 {
			slot, f.free = f.free[last], f.free[:last]
		}
		f.slots[cluster.Name] = slot
	}
	before := f.views[cluster.Name]
	f.views[cluster.Name] = decide.NewView(cluster, slot, before)
	return f.views[cluster.Name] != before
}

// drop takes a cluster out, and reports whether it was there.
func (f *fleet) drop(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	slot, known := f.slots[name]
	if known {
		f.free = append(f.free, slot)
		delete(f.slots, name)
		delete(f.views, name)
	}
	return known
}

// snapshot is the fleet at one time, as a namespace sees it.
type snapshot struct {
	// seen are the clusters that the namespace may see.
	seen []*decide.View
	// visible and registered are those of some names.
	visible    map[string]*decide.View
	registered map[string]bool
}

// snapshot returns the fleet as a namespace sees it, and what is known of the names.
func (f *fleet) snapshot(by Target, names []string) snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := snapshot{visible: map[string]*decide.View{}, registered: map[string]bool{}}
	for _, view := range f.views {
		if by.sees(view) {
			out.seen = append(out.seen, view)
		}
	}
	for _, name := range names {
		view := f.views[name]
		if out.registered[name] = view != nil; view != nil && by.sees(view) {
			out.visible[name] = view
		}
	}
	return out
}

// trim drops what no selection sees before a cluster is kept in memory.
func trim(object any) (any, error) {
	if cluster, ok := object.(*v1beta1.Cluster); ok {
		cluster.Annotations, cluster.ManagedFields = nil, nil
		cluster.Spec.Endpoints, cluster.Spec.Access = nil, nil
		if cluster.Status != nil {
			cluster.Status.Reporters = nil
			for i := range cluster.Status.Conditions {
				cluster.Status.Conditions[i].Message = ""
			}
		}
	}
	return object, nil
}

package feed

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	lister "github.com/clusterregistry/operator/client/listers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

const (
	// settle is how long an entry that is gone stays in answers: all that go at once are seen
	// together, and one that is deleted and made again stays.
	settle = 10 * time.Second
	// many is how many entries never leave answers at once if they are more than half.
	many = 3
	// patience is how long the first answer waits for endpoints that were never asked. Those
	// of which nothing is known by then have no address yet.
	patience = 2 * time.Minute
)

// fleet is what there is to answer, as the registry changes.
type fleet struct {
	Settings
	clusters lister.ClusterLister
	known    func(*v1beta1.Cluster) format.Known
	// synced reports whether all of the registry was read and noted, and unwatched why its changes are not seen;
	// nil when they are.
	synced    func() bool
	unwatched func() error
	clock     clock.PassiveClock

	mu      sync.Mutex
	entries map[string]*entry
	// gone has since when the registry lacks entries that are still in answers.
	gone map[string]time.Time
	// revision grows with each change, and sorted are the entries by name as of the revision at.
	revision, at int64
	sorted       []*entry
	// began is when the registry had been read, and begun says that all endpoints were asked
	// once, or that they were waited for long enough.
	began time.Time
	begun bool
}

// snapshot is what there is to answer at one time.
type snapshot struct {
	revision int64
	entries  []*entry
}

// changed looks at an entry.
func (f *fleet) changed(name string) {
	cluster, err := f.clusters.Get(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.entries[name]
	if apierrors.IsNotFound(err) {
		if _, already := f.gone[name]; before != nil && !already {
			f.gone[name] = f.clock.Now()
		}
		return
	} else if err != nil {
		return // a read from memory has no other error
	}
	delete(f.gone, name)
	now := f.entryOf(cluster, f.known(cluster), before)
	if now.same(before) {
		return
	}
	f.entries[name] = now
	f.revision++
}

// complete returns all entries, or why an answer would not be complete.
func (f *fleet) complete() (snapshot, error) {
	if !f.synced() {
		return snapshot{}, errors.New("the clusters of the registry are not read yet")
	}
	if err := f.unwatched(); err != nil {
		return snapshot{}, fmt.Errorf("the clusters of the registry can't be watched: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.sweep(); err != nil {
		return snapshot{}, err
	}
	if !f.settled() {
		return snapshot{}, errors.New("the endpoints of the clusters are not all asked yet")
	}
	if f.sorted == nil || f.at != f.revision {
		f.sorted, f.at = slices.SortedFunc(maps.Values(f.entries), func(a, b *entry) int { return cmp.Compare(a.Name, b.Name) }), f.revision
	}
	return snapshot{f.revision, f.sorted}, nil
}

// sweep drops entries that have been gone for a while, unless too many are: a registry that was
// emptied, or restored, or hides its clusters from this controller, answers like one whose clusters
// are all gone. A person then decides.
func (f *fleet) sweep() error {
	if len(f.gone) >= many && 2*len(f.gone) > len(f.entries) {
		names := slices.Sorted(maps.Keys(f.gone))
		return fmt.Errorf("%d of %d clusters are gone at once (%s): a registry that was emptied or restored looks the same; if that is right, restart the controller, which then answers with what there is", len(names), len(f.entries), format.List(names))
	}
	for name, since := range f.gone {
		if f.clock.Since(since) >= settle {
			delete(f.gone, name)
			delete(f.entries, name)
			f.revision++
		}
	}
	return nil
}

// settled reports whether all endpoints were asked once, or were waited for long enough: what had an
// address before this process has one in its first answer, if its server answers.
func (f *fleet) settled() bool {
	if f.begun {
		return true
	}
	if f.began.IsZero() {
		f.began = f.clock.Now()
	}
	waits := func(e *entry) bool { return e.Reason == reasonNotAsked }
	f.begun = f.clock.Since(f.began) >= patience || !slices.ContainsFunc(slices.Collect(maps.Values(f.entries)), waits)
	return f.begun
}

// counts returns how many entries there are, and how many of them have an address.
func (f *fleet) counts() (all, addressed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.entries {
		if e.Address != "" {
			addressed++
		}
	}
	return len(f.entries), addressed
}

// started reports whether there ever was an answer.
func (f *fleet) started() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun
}

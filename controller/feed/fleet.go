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
	// many is how many entries, or addresses, never leave answers at once if they are more than half.
	many = 3
	// patience is how long the first answer waits for endpoints that were asked fewer than failures
	// times: the network of a pod that was just started may not be there yet. So long it also waits for
	// more clusters where nothing says what was last answered: they may be made again one by one.
	patience = 2 * time.Minute
	failures = 3
)

// errNoClusters is why a registry without clusters has no answer: where nothing says what was last
// answered, all may be lost.
var errNoClusters = errors.New("the registry has no clusters, and nothing says that it had none before")

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
	// remedy is how a person says that clusters, or addresses, may leave answers.
	remedy string

	mu      sync.Mutex
	entries map[string]*entry
	// gone has since when the registry lacks entries that are still in answers.
	gone map[string]time.Time
	// last is what was last answered, by this process or another one, nil where nothing was; read says
	// that it was looked for.
	last *answered
	read bool
	// revision grows with each change, and sorted are the entries by name as of the revision at.
	revision, at int64
	sorted       []*entry
	// began is when the registry had been read, and begun says that all endpoints were asked, or
	// that they were waited for long enough.
	began time.Time
	begun bool
}

// snapshot is what there is to answer at one time.
type snapshot struct {
	revision int64
	entries  []*entry
}

// changed looks at an entry. It reads it under the lock: else, of two that look at once, the one that
// read the older state could note it last.
func (f *fleet) changed(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	cluster, err := f.clusters.Get(name)
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
	now := f.entryOf(cluster, f.known(cluster), before).left(before, f.clock.Now())
	f.entries[name] = now
	if !now.same(before) {
		f.revision++
	}
}

// complete returns all entries, or why an answer would not be complete.
func (f *fleet) complete() (snapshot, error) {
	if err := f.seen(); err != nil {
		return snapshot{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.read {
		return snapshot{}, errors.New("what was last answered is not read yet")
	}
	if err := f.sweep(); err != nil {
		return snapshot{}, err
	}
	if err := f.settled(); err != nil {
		return snapshot{}, err
	}
	if f.last == nil || f.at != f.revision {
		f.sorted, f.at = slices.SortedFunc(maps.Values(f.entries), func(a, b *entry) int { return cmp.Compare(a.Name, b.Name) }), f.revision
		f.last = answeredOf(f.sorted)
	}
	return snapshot{f.revision, f.sorted}, nil
}

// seen returns why the registry is not seen as it is.
func (f *fleet) seen() error {
	if !f.synced() {
		return errors.New("the clusters of the registry are not read yet")
	}
	if err := f.unwatched(); err != nil {
		return fmt.Errorf("the clusters of the registry can't be watched: %w", err)
	}
	return nil
}

// sweep drops entries that have been gone for a while, unless too many are: a registry that was
// emptied, or restored, or hides its clusters from this controller, answers like one whose clusters
// are all gone. A person then decides.
func (f *fleet) sweep() error {
	if f.last == nil && len(f.entries) == 0 {
		return errNoClusters
	}
	for _, e := range f.entries {
		if f.last == nil && f.clock.Since(e.created) < patience {
			return fmt.Errorf("nothing says which clusters there were before, and one was just added: requests are answered once none was added for %v; if all are there, say so: %s", patience, f.remedy)
		}
	}
	lost := f.last.lost(func(a *answered) []string { return a.Clusters }, func(name string) bool {
		_, gone := f.gone[name]
		return gone || f.entries[name] == nil
	})
	if len(f.entries) == 0 && f.last != nil && lost == "" { // one or two, that another process had
		lost = format.List(f.last.Clusters)
	}
	if lost != "" {
		return fmt.Errorf("more than half of the clusters are gone at once, such as %s: a registry that was emptied or restored looks the same; if that is right, say so: %s", lost, f.remedy)
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

// settled returns why addresses are not known well enough: what had one before this process has one in
// its first answer, if its server answers, and more than half of them are never lost at once.
func (f *fleet) settled() error {
	if f.began.IsZero() {
		f.began = f.clock.Now()
	}
	if !f.begun && f.clock.Since(f.began) < patience && slices.ContainsFunc(slices.Collect(maps.Values(f.entries)), func(e *entry) bool { return e.pending }) {
		return errors.New("the endpoints of the clusters are not all asked yet")
	}
	f.begun = true
	had := f.last
	if had == nil { // all that offer an address may have had one
		had = &answered{}
		for name, e := range f.entries {
			if e.withheld || e.Address != "" {
				had.Addressed = append(had.Addressed, name)
			}
		}
		slices.Sort(had.Addressed)
	}
	lost := had.lost(func(a *answered) []string { return a.Addressed }, func(name string) bool {
		e := f.entries[name]
		return e != nil && e.withheld
	})
	if lost != "" {
		return fmt.Errorf("the addresses of more than half of the clusters are not verified, such as %s: the network of the controller may be at fault; if they are to be answered without addresses, say so: %s", lost, f.remedy)
	}
	return nil
}

// recall notes what was last answered, by whichever process.
func (f *fleet) recall(last *answered) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = true
	if last != nil {
		f.last = last
		f.at = -1 // which is not of what this process has answered
	}
}

// accept has answers be of what there is now: a person has said so.
func (f *fleet) accept() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.gone {
		delete(f.entries, name)
	}
	clear(f.gone)
	f.revision++
	f.read, f.last = true, answeredOf(slices.Collect(maps.Values(f.entries)))
}

// answer returns what was last answered.
func (f *fleet) answer() *answered {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
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

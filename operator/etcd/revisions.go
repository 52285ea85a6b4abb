package etcd

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Seen is a revision that an etcd was at.
type Seen struct {
	// Revision is zero when none is known.
	Revision int64
	Time     time.Time
}

// seenEvery is how far apart the revisions are that are remembered.
const seenEvery = 30 * time.Second

// Revisions remembers at which revisions each etcd was in the last minutes, so that one
// that is full can be compacted at once. That is a convenience: what is forgotten when the
// operator ends is waited for, and a revision that is too old drops less. The zero value is
// ready to use.
type Revisions struct {
	lock sync.Mutex
	of   map[string][]Seen
	// newest are the newest ones.
	newest map[string]int64
}

// Note remembers the revision of an etcd, by any name of it, if it is known. When that is
// less than before, it is another etcd, or a restored one.
func (r *Revisions) Note(name string, seen Seen) {
	if seen.Revision == 0 {
		return
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.of == nil {
		r.of, r.newest = map[string][]Seen{}, map[string]int64{}
	}
	r.newest[name] = max(r.newest[name], seen.Revision)
	all := r.of[name]
	if len(all) > 0 {
		switch last := all[len(all)-1]; {
		case seen.Revision < last.Revision || seen.Time.Before(last.Time):
			all = nil
		case seen.Time.Sub(last.Time) < seenEvery:
			return
		}
	}
	all = append(all, seen)
	if i := old(all, seen.Time); i > 0 {
		all = slices.Delete(all, 0, i)
	}
	r.of[name] = all
}

// Old returns the newest revision at which an etcd was at least History ago, the zero value
// when none is known.
func (r *Revisions) Old(name string, now time.Time) Seen {
	r.lock.Lock()
	defer r.lock.Unlock()
	all := r.of[name]
	if i := old(all, now); i >= 0 {
		return all[i]
	}
	return Seen{}
}

// Newest returns the newest revision that was noted of an etcd, zero when none was.
func (r *Revisions) Newest(name string) int64 {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.newest[name]
}

// All returns the newest revision that was noted of each etcd.
func (r *Revisions) All() map[string]int64 {
	r.lock.Lock()
	defer r.lock.Unlock()
	return maps.Clone(r.newest)
}

// Forget drops what is known of an etcd.
func (r *Revisions) Forget(name string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.of, name)
	delete(r.newest, name)
}

// old returns the index of the newest that is at least History old, -1 when there is none.
func old(all []Seen, now time.Time) int {
	newest := -1
	for i, seen := range all {
		if now.Sub(seen.Time) >= History {
			newest = i
		}
	}
	return newest
}

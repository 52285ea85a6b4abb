package ui

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// The kinds of what the page shows. Each has a source of its own.
const (
	kindClusters   = "clusters"
	kindRegistries = "registries"
	kindBackups    = "backups"
)

// entryKey names an entry of the feed.
type entryKey struct{ kind, name string }

// Connection is how a source is reached.
type Connection struct {
	Source string `json:"source"`
	// State is Loading before anything was read, Live while changes arrive, Lost when they
	// don't, and Absent where there is nothing to read, or no right to.
	State State `json:"state"`
	// Since is when the state began.
	Since time.Time `json:"since"`
	// Seen is when the source was last heard of: what the page shows is as of then.
	Seen *time.Time `json:"seen,omitempty"`
	// Message says why it is not Live.
	Message string `json:"message,omitempty"`
}

// State is that of a connection.
type State string

// The states of a connection.
const (
	Loading State = "Loading"
	Live    State = "Live"
	Lost    State = "Lost"
	Absent  State = "Absent"
)

// timed is an entry that depends on the time when it is read.
type timed func(now time.Time) any

// feed has the present view of every entry, and tells readers what has changed. Of each entry
// it keeps one, and for each reader no more than the names of those that it has not read: a
// reader that is slow misses states, and costs no memory.
type feed struct {
	now         func() time.Time
	mutex       sync.Mutex
	entries     map[entryKey]any
	connections map[string]Connection
	readers     map[*reader]bool
}

// reader is one of a feed.
type reader struct {
	feed  *feed
	dirty map[entryKey]bool
	// connections is true when one of them has changed.
	connections bool
	// wake has a value when there is something to read.
	wake chan struct{}
}

func newFeed(now func() time.Time) *feed {
	return &feed{now: now, entries: map[entryKey]any{}, connections: map[string]Connection{}, readers: map[*reader]bool{}}
}

// set sets an entry; nil removes it.
func (f *feed) set(kind, name string, entry any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.change(entryKey{kind, name}, entry)
}

// replace sets all entries of a kind.
func (f *feed) replace(kind string, entries map[string]any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for key := range f.entries {
		if _, stays := entries[key.name]; key.kind == kind && !stays {
			f.change(key, nil)
		}
	}
	for name, entry := range entries {
		f.change(entryKey{kind, name}, entry)
	}
}

func (f *feed) change(key entryKey, entry any) {
	if entry == nil {
		delete(f.entries, key)
	} else {
		f.entries[key] = entry
	}
	for r := range f.readers {
		r.dirty[key] = true
		r.call()
	}
}

// again has readers read all entries of a kind.
func (f *feed) again(kind string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for key, entry := range f.entries {
		if key.kind == kind {
			f.change(key, entry)
		}
	}
}

// connect sets the state of a source. The time since when it has been so stays while it does.
func (f *feed) connect(source string, state State, message string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := f.now()
	before, known := f.connections[source]
	next := before
	if !known || before.State != state {
		next.Since = now
	}
	next.Source, next.State, next.Message = source, state, message
	if state == Live {
		next.Seen = &now
	}
	f.connections[source] = next
	if known && before.State == state && before.Message == message {
		return // it was heard of, which changes nothing on the page
	}
	for r := range f.readers {
		r.connections = true
		r.call()
	}
}

// knows reports whether a source was ever heard of.
func (f *feed) knows(source string) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.connections[source].Seen != nil
}

// read returns a reader for which all there is has changed.
func (f *feed) read() *reader {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	r := &reader{feed: f, dirty: map[entryKey]bool{}, connections: true, wake: make(chan struct{}, 1)}
	for key := range f.entries {
		r.dirty[key] = true
	}
	f.readers[r] = true
	r.call()
	return r
}

// call has the reader look.
func (r *reader) call() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// close ends a reader.
func (r *reader) close() {
	r.feed.mutex.Lock()
	defer r.feed.mutex.Unlock()
	delete(r.feed.readers, r)
}

// Change is what has changed since a reader asked before.
type Change struct {
	Connections []Connection `json:"connections,omitempty"`
	// Set are the entries that are new or different, by kind; Gone are the names of those
	// that are no longer there.
	Set  map[string][]any    `json:"set,omitempty"`
	Gone map[string][]string `json:"gone,omitempty"`
	// More is true when there is more to read already.
	More bool `json:"more,omitempty"`
}

// next returns at most so many changes.
func (r *reader) next(most int) Change {
	r.feed.mutex.Lock()
	defer r.feed.mutex.Unlock()
	out := Change{Set: map[string][]any{}, Gone: map[string][]string{}}
	for key := range r.dirty {
		if most == 0 {
			break
		}
		most--
		delete(r.dirty, key)
		if entry, is := r.feed.entries[key]; is {
			if entry, is := entry.(timed); is {
				out.Set[key.kind] = append(out.Set[key.kind], entry(r.feed.now()))
				continue
			}
			out.Set[key.kind] = append(out.Set[key.kind], entry)
		} else {
			out.Gone[key.kind] = append(out.Gone[key.kind], key.name)
		}
	}
	out.More = len(r.dirty) > 0
	// What is said of a connection is true of all that was sent, so it comes last.
	if r.connections && !out.More {
		r.connections = false
		for _, source := range slices.Sorted(maps.Keys(r.feed.connections)) {
			out.Connections = append(out.Connections, r.feed.connections[source])
		}
	}
	return out
}

package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/e2e/history/feed"
)

// told is a change that a watch told of.
type told struct {
	name string
	write
}

// watcher follows the clusters of a load. It goes on from the last version that
// it was told, changes and bookmarks alike. When it was too slow for that, it lists
// the clusters, and what the list can't tell is missed.
type watcher struct {
	name   string
	source feed.Source
	fail   func(error)

	version string

	mu      sync.Mutex
	told    []told
	last    map[string]write
	resumed int
	gaps    []gap
}

// newWatcher returns a watcher of the load's clusters among those at a URL.
// Requests that are not answered as they should be are told to fail.
func newWatcher(name, clusters string, transport http.RoundTripper, fail func(error)) *watcher {
	return &watcher{name: name, source: feed.Source{URL: clusters + "?labelSelector=load%3Dyes", Client: &http.Client{Transport: transport}}, fail: fail, last: map[string]write{}}
}

// begin finds out where the watch is to begin: all later changes will be told.
func (w *watcher) begin(ctx context.Context) (err error) {
	w.version, err = w.source.Version(ctx)
	return err
}

// follow watches until the context ends.
func (w *watcher) follow(ctx context.Context) {
	for {
		err := w.source.Watch(ctx, w.version, w.event)
		if feed.Gone(err) && ctx.Err() == nil {
			err = w.relist(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		w.resumed++
		w.mu.Unlock()
		if err != nil {
			w.fail(fmt.Errorf("%s, from version %s: %w", w.name, w.version, err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// event takes an event as it came.
func (w *watcher) event(kind watch.EventType, object json.RawMessage) error {
	name, version, err := identify(object)
	if err != nil {
		return err
	}
	return w.take(kind, name, version)
}

// identify reads which cluster an object is, and in which version.
func identify(object json.RawMessage) (name, version string, err error) {
	var changed struct {
		Metadata struct{ Name, ResourceVersion string }
	}
	err = json.Unmarshal(object, &changed)
	return changed.Metadata.Name, changed.Metadata.ResourceVersion, err
}

// take notes an event.
func (w *watcher) take(kind watch.EventType, name, version string) error {
	number, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return fmt.Errorf("%s %s has no version: %w", kind, name, err)
	}
	w.version = version
	if kind == watch.Bookmark {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell(name, write{kind, number})
	return nil
}

// tell notes what a cluster is reported to be. It is called with the lock held.
func (w *watcher) tell(name string, what write) {
	w.told = append(w.told, told{name, what})
	w.last[name] = what
}

// behind returns of how many clusters the last acknowledged write was not told
// yet, nor skipped.
func (w *watcher) behind(lives []*Life) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, life := range lives {
		if len(life.history) == 0 {
			continue
		}
		want, got := life.history[len(life.history)-1], w.last[life.Name]
		if (got.version < want.version || want.kind == watch.Deleted && got.kind != watch.Deleted) && !life.skipped(w.gaps, len(life.history)-1) {
			count++
		}
	}
	return count
}

// catchUp waits until watchers were told of all that was acknowledged, but not
// forever: what is missing then is missed.
func catchUp(watches []*watcher, lives []*Life) {
	deadline := time.Now().Add(2 * time.Minute)
	for _, w := range watches {
		for w.behind(lives) > 0 && time.Now().Before(deadline) {
			time.Sleep(interval)
		}
	}
}

package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/e2e/history/feed"
)

// watcher follows all clusters of a history. A watch that ends is resumed from the last
// version that it was told, by an event or a bookmark. Where that is refused because the
// version is too old, it begins again, which is a failure.
type watcher struct {
	name   string
	source feed.Source
	since  func() time.Duration
	failed func(Failure)

	mu sync.Mutex
	// told is what it was told, with a new Watch each time that it had to begin again.
	told []Watch
}

// begin finds out where to watch from.
func (w *watcher) begin(ctx context.Context) error {
	text, err := w.source.Version(ctx)
	if err != nil {
		return err
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("the list of clusters has no version: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name := w.name
	if n := len(w.told); n > 0 {
		name = fmt.Sprintf("%s, begun again %d times", w.name, n)
	}
	w.told = append(w.told, Watch{Name: name, From: version, To: version})
	return nil
}

// version is the last that it was told.
func (w *watcher) version() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told[len(w.told)-1].To
}

// follow watches until the context ends.
func (w *watcher) follow(ctx context.Context) {
	const pause = 250 * time.Millisecond
	for {
		sent, version := w.since(), w.version()
		err := w.source.Watch(ctx, strconv.FormatUint(version, 10), w.take)
		if feed.Gone(err) {
			err = errors.Join(err, w.begin(ctx))
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.failed(Failure{sent, w.since(), fmt.Sprintf("%s, from version %d: %v", w.name, version, err)})
		}
		w.mu.Lock()
		w.told[len(w.told)-1].Resumed++
		w.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// take notes an event.
func (w *watcher) take(kind watch.EventType, object json.RawMessage) error {
	var got v1beta1.Cluster
	if err := json.Unmarshal(object, &got); err != nil {
		return err
	}
	c, err := clusterOf(&got)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	last := &w.told[len(w.told)-1]
	last.To = max(last.To, c.Version)
	if kind != watch.Bookmark {
		last.Events = append(last.Events, Event{c, kind, w.since()})
	}
	return nil
}

package framework

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// watchSeconds is how long one watch takes, so that even short loads resume some.
const watchSeconds = "15"

// told is a change that a watch told of.
type told struct {
	name string
	write
}

// watcher follows the clusters of a load. It goes on from the last version that
// it was told, changes and bookmarks alike, and never lists again: what it can't
// be told any more is missed.
type watcher struct {
	name   string
	url    string
	client *http.Client
	fail   func(error)

	version string

	mu      sync.Mutex
	told    []told
	last    map[string]write
	resumed int
	lost    bool
}

// newWatcher returns a watcher of the load's clusters among those at a URL.
// Requests that are not answered as they should be are told to fail.
func newWatcher(name, clusters string, transport http.RoundTripper, fail func(error)) *watcher {
	return &watcher{name: name, url: clusters, client: &http.Client{Transport: transport}, fail: fail, last: map[string]write{}}
}

// begin finds out where the watch is to begin: all later changes will be told.
func (w *watcher) begin(ctx context.Context) error {
	response, err := w.get(ctx, url.Values{"limit": {"1"}})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return err
	}
	if w.version = list.Metadata.ResourceVersion; w.version == "" {
		return errors.New("the list of clusters has no version")
	}
	return nil
}

// refused is an answer to a request that was not wanted.
type refused struct {
	code int
	text string
}

func (r refused) Error() string { return fmt.Sprintf("status %d: %s", r.code, r.text) }

func (w *watcher) get(ctx context.Context, query url.Values) (*http.Response, error) {
	query.Set("labelSelector", "load=yes")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1000))
	if err != nil {
		return nil, err
	}
	return nil, refused{response.StatusCode, strings.TrimSpace(string(body))}
}

// follow watches until the context ends, or the version that it got to is gone.
func (w *watcher) follow(ctx context.Context) {
	for {
		err := w.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		w.resumed++
		w.mu.Unlock()
		var answer refused
		gone := errors.As(err, &answer) && answer.code == http.StatusGone
		if err != nil {
			w.fail(fmt.Errorf("%s, from version %s: %w", w.name, w.version, err))
		}
		if gone {
			w.mu.Lock()
			w.lost = true
			w.mu.Unlock()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
}

// watch follows one watch to its end, whichever way it comes. The error is about
// one that was refused, or told of an error.
func (w *watcher) watch(ctx context.Context) error {
	response, err := w.get(ctx, url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {watchSeconds}, "resourceVersion": {w.version}})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	decoder := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   watch.EventType
			Object struct {
				Metadata struct{ Name, ResourceVersion string }
				Code     int
				Message  string
			}
		}
		if err := decoder.Decode(&event); err != nil {
			return nil // it may be closed at any time, in the middle of an event, too
		}
		if event.Type == watch.Error {
			return refused{event.Object.Code, event.Object.Message}
		}
		if err := w.take(event.Type, event.Object.Metadata.Name, event.Object.Metadata.ResourceVersion); err != nil {
			return err
		}
	}
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
	w.told = append(w.told, told{name, write{kind, number}})
	w.last[name] = write{kind, number}
	return nil
}

// behind returns of how many clusters the last acknowledged write was not told
// yet; none when it will never be.
func (w *watcher) behind(lives []*Life) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost {
		return 0
	}
	count := 0
	for _, life := range lives {
		if len(life.history) == 0 {
			continue
		}
		want, got := life.history[len(life.history)-1], w.last[life.Name]
		if got.version < want.version || want.kind == watch.Deleted && got.kind != watch.Deleted {
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

package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// watchSeconds is how long one watch takes, so that even short histories resume some.
const watchSeconds = 15

// watcher follows all clusters of a history. A watch that ends is resumed from the last
// version that it was told, by an event or a bookmark. Where that is refused because the
// version is too old, it begins again, which is a failure.
type watcher struct {
	name, url string
	client    *http.Client
	since     func() time.Duration
	failed    func(Failure)

	mu sync.Mutex
	// told is what it was told, with a new Watch each time that it had to begin again.
	told []Watch
}

// refused is an answer to a request that was not wanted.
type refused struct {
	code int
	text string
}

func (r refused) Error() string { return fmt.Sprintf("status %d: %s", r.code, r.text) }

// begin finds out where to watch from.
func (w *watcher) begin(ctx context.Context) error {
	response, err := w.get(ctx, "&limit=1")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var list v1beta1.ClusterList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return err
	}
	version, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
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

func (w *watcher) get(ctx context.Context, query string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+query, nil)
	if err != nil {
		return nil, err
	}
	response, err := w.client.Do(request)
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1000))
	if err != nil {
		return nil, err
	}
	return nil, refused{response.StatusCode, strings.TrimSpace(string(body))}
}

// follow watches until the context ends.
func (w *watcher) follow(ctx context.Context) {
	const pause = 250 * time.Millisecond
	for {
		sent, version := w.since(), w.version()
		err := w.watch(ctx, version)
		var answer refused
		if errors.As(err, &answer) && answer.code == http.StatusGone {
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

// watch follows one watch to its end, whichever way it comes. The error is about one that
// was refused, or reported an error.
func (w *watcher) watch(ctx context.Context, from uint64) error {
	response, err := w.get(ctx, fmt.Sprintf("&watch=true&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%d", watchSeconds, from))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	decoder := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   watch.EventType
			Object json.RawMessage
		}
		if err := decoder.Decode(&event); err != nil {
			return nil // it may be closed at any time, in the middle of an event, too
		}
		if err := w.take(event.Type, event.Object); err != nil {
			return err
		}
	}
}

// take notes an event.
func (w *watcher) take(kind watch.EventType, object []byte) error {
	if kind == watch.Error {
		var status struct {
			Code    int
			Message string
		}
		if err := json.Unmarshal(object, &status); err != nil {
			return err
		}
		return refused{status.Code, status.Message}
	}
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

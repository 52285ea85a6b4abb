package watchcache

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

const (
	// pause is for how long a watch lasts at least. One that is shorter than a second and told
	// nothing is an error for the library's cache.
	pause = 1100 * time.Millisecond
	// asked is for how long etcd may take to say its revision. Without a leader it says none.
	asked = 2 * time.Second
	// look is the time between two looks at whether etcd is where its watch is.
	look = time.Minute
)

// lasting is the storage that a cache is filled from. When etcd has no leader, its watches end
// without an error, after which the cache begins another one where the last one ended.
//
// An etcd that was set back to a backup tells a watch nothing until it has made up for what is
// missing, and nothing of that. Watches end with 410 then, and the cache is filled again: when one
// begins, and while one lasts, since etcd's client continues watches automatically when members
// start again.
type lasting struct{ storage.Interface }

// Watch begins a watch.
func (l lasting) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	from, err := l.Versioner().ParseResourceVersion(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	below := watch.NewEmptyWatch() // has ended
	switch now, known := l.revision(ctx); {
	case !known: // nor what a watch would tell
	case now < from:
		return nil, setBack(now, from)
	default:
		if below, err = l.Interface.Watch(ctx, key, options); err != nil {
			return nil, err
		}
	}
	events := make(chan watch.Event)
	w := &lastingWatch{ProxyWatcher: watch.NewProxyWatcher(events), lasting: l, below: below, seen: from, events: events}
	go w.run(ctx)
	return w, nil
}

// revision returns at which revision etcd is, if it says that.
func (l lasting) revision(ctx context.Context) (now uint64, known bool) {
	ctx, cancel := context.WithTimeout(ctx, asked)
	defer cancel()
	now, err := l.GetCurrentResourceVersion(ctx)
	return now, err == nil
}

func setBack(now, was uint64) *apierrors.StatusError {
	return apierrors.NewResourceExpired(fmt.Sprintf("etcd is at revision %d and was at %d: it was set back", now, was))
}

// lastingWatch tells its events to the embedded watch.
type lastingWatch struct {
	*watch.ProxyWatcher
	lasting lasting
	below   watch.Interface
	// seen is the newest version that was told.
	seen   uint64
	events chan<- watch.Event
}

// run passes on what the watch below tells, until that ends or this one is stopped.
func (w *lastingWatch) run(ctx context.Context) {
	defer close(w.events)
	defer w.below.Stop()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-w.StopChan():
			return
		case event, told := <-w.below.ResultChan():
			if !told || leaderless(event) {
				w.rest()
				return
			}
			if version, err := w.lasting.Versioner().ObjectResourceVersion(event.Object); err == nil {
				w.seen = max(w.seen, version)
			}
			w.tell(event)
		case <-ticker.C:
			if now, known := w.lasting.revision(ctx); known && now < w.seen {
				status := setBack(now, w.seen).Status()
				w.tell(watch.Event{Type: watch.Error, Object: &status})
			}
		}
	}
}

// tell passes on an event, unless the watch is stopped.
func (w *lastingWatch) tell(event watch.Event) {
	select {
	case w.events <- event:
	case <-w.StopChan():
	}
}

// rest waits before the end.
func (w *lastingWatch) rest() {
	select {
	case <-time.After(pause):
	case <-w.StopChan():
	}
}

// leaderless reports whether an event is the error of a watch that a member of etcd ended or
// refused because it knows of no leader. The storage passes on its text only.
func leaderless(event watch.Event) bool {
	status, ok := event.Object.(*metav1.Status)
	return ok && event.Type == watch.Error && strings.HasSuffix(status.Message, rpctypes.ErrorDesc(rpctypes.ErrGRPCNoLeader))
}

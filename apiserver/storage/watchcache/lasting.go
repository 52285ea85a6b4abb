package watchcache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// pause is for how long a watch lasts that etcd has ended or refused. One that is shorter than a
// second and told nothing is an error for the library's cache.
const pause = 1100 * time.Millisecond

// asked is for how long etcd may take to say its revision. Without a leader it says none.
const asked = 2 * time.Second

// lasting is the storage that a cache is filled from. When etcd has no leader, its watches end
// without an error, after which the cache begins another one where the last one ended.
type lasting struct{ storage.Interface }

// Watch begins a watch, or fails with 410 where etcd has yet to reach the version to begin at: it
// was set back to a backup, and would tell nothing until it has made up for what is missing. The
// cache is filled anew then.
func (l lasting) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	from, err := l.Versioner().ParseResourceVersion(options.ResourceVersion)
	if err != nil {
		return nil, err
	}
	if now, err := l.revision(ctx); err == nil && now < from {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("etcd is at revision %d and was at %d: it was set back", now, from))
	}
	below, err := l.Interface.Watch(ctx, key, options)
	if err != nil {
		return nil, err
	}
	w := &lastingWatch{below: below, events: make(chan watch.Event), stopped: make(chan struct{})}
	w.stop = sync.OnceFunc(func() {
		close(w.stopped)
		below.Stop()
	})
	go w.run()
	return w, nil
}

func (l lasting) revision(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, asked)
	defer cancel()
	return l.GetCurrentResourceVersion(ctx)
}

type lastingWatch struct {
	below   watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	stop    func()
}

func (w *lastingWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *lastingWatch) Stop() { w.stop() }

// run passes on what the watch below tells, until that ends or this one is stopped.
func (w *lastingWatch) run() {
	defer close(w.events)
	for event := range w.below.ResultChan() {
		if leaderless(event) {
			select {
			case <-time.After(pause):
			case <-w.stopped:
			}
			return
		}
		select {
		case w.events <- event:
		case <-w.stopped:
			return
		}
	}
}

// leaderless reports whether an event is the error of a watch that a member of etcd ended or
// refused because it knows of no leader. The storage passes on its text only.
func leaderless(event watch.Event) bool {
	status, ok := event.Object.(*metav1.Status)
	return ok && event.Type == watch.Error && strings.HasSuffix(status.Message, rpctypes.ErrorDesc(rpctypes.ErrGRPCNoLeader))
}

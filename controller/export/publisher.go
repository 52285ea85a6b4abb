package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// soonest and latest bound the time until a write that failed is tried again.
	soonest, latest = time.Second, 30 * time.Second
	// doubtful is the least time between two looks at the namespace because writes fail.
	doubtful = time.Second
)

// publisher publishes in one namespace, in one format.
type publisher struct {
	*Controller
	Target
	kind    format.Kind
	objects dynamic.ResourceInterface
	// owner is the RoleBinding that lets objects be written; nil when that is none of those of
	// this registry.
	owner atomic.Pointer[metav1.OwnerReference]
	// chosen are the clusters that the ClusterSelection of the export has chosen; nil while that
	// is not known.
	chosen atomic.Pointer[sets.Set[string]]

	mu      sync.Mutex
	session *session
}

// run publishes while the namespace is open, until ctx ends.
func (p *publisher) run(ctx context.Context) {
	for ctx.Err() == nil {
		closed := p.closed(ctx)
		if closed == nil {
			closed = p.publish(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		p.report(p.Target, *closed)
		select {
		case <-ctx.Done():
		case <-p.Clock.After(recheck):
		}
	}
}

// notify has the session, if there is one, look at a cluster.
func (p *publisher) notify(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		p.session.queue.Add(name)
	}
}

// again has the session, if there is one, look at all clusters.
func (p *publisher) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		p.session.queueAll()
	}
}

// publish runs a session until the namespace closes, and returns why it has.
func (p *publisher) publish(ctx context.Context) *verdict {
	ctx, cancel := context.WithCancel(ctx)
	s := p.newSession()
	var running sync.WaitGroup
	defer p.Metrics.forget(p.Target) // the last: nothing counts any more then
	defer p.chosen.Store(nil)
	defer running.Wait()
	defer s.queue.ShutDown()
	defer cancel()
	running.Go(func() { s.informer.RunWithContext(ctx) })
	if s.choosing != nil {
		running.Go(func() { s.choosing.RunWithContext(ctx) })
	}
	if closed := p.await(ctx, s); closed != nil || ctx.Err() != nil {
		return closed
	}
	p.mu.Lock()
	p.session = s
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.session = nil
		p.mu.Unlock()
	}()
	s.queueAll()
	running.Go(func() { s.work(ctx) })
	return p.attend(ctx, s.doubt, func(passing *verdict) {
		s.passing.Store(passing)
		s.queue.Add(sweep)
	})
}

// await waits until the objects of the namespace are known, and returns why it closes.
func (p *publisher) await(ctx context.Context, s *session) *verdict {
	synced := make(chan struct{})
	go func() {
		defer close(synced)
		cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced)
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-synced
		cancel()
	}()
	return p.attend(ctx, s.doubt, func(*verdict) {
		v := verdict{state: contract.FunctionStarting, message: fmt.Sprintf("Waiting for the %s of namespace %q.", p.kind.Words, p.Namespace)}
		if err := s.unread.lasting(p.Clock.Now()); err != nil {
			v = verdict{state: contract.FunctionFailing, message: p.unreadable(err)}
		}
		p.report(p.Target, v)
	})
}

func (p *publisher) unreadable(err error) string {
	return fmt.Sprintf("%s of namespace %q can't be listed or watched: %v.", p.kind.Words, p.Namespace, err)
}

// attend looks at the namespace every now and then, and sooner in doubt, until it is
// closed or ctx ends. Each is told when it is open, or may be.
func (p *publisher) attend(ctx context.Context, doubt <-chan struct{}, each func(passing *verdict)) *verdict {
	ticker := p.Clock.NewTicker(recheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-doubt:
		}
		closed := p.closed(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if closed != nil && !closed.passing {
			return closed
		}
		each(closed)
		select {
		case <-ctx.Done():
			return nil
		case <-p.Clock.After(doubtful):
		}
	}
}

// newSession returns a session that has not begun.
func (p *publisher) newSession() *session {
	s := &session{
		publisher: p, doubt: make(chan struct{}, 1),
		shown: map[string]bool{}, held: map[string]string{}, ending: map[string]ending{}, failing: map[string]error{}, cut: map[string]bool{}, without: map[string]format.Withheld{}, claims: map[string]claim{}, due: map[string]time.Time{}, writes: map[string]writes{},
		informer: dynamicinformer.NewFilteredDynamicInformer(p.Config.Objects, p.kind.Resource, p.Namespace, 0, p.indexers(), p.tweak()).Informer(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[string](soonest, latest),
			workqueue.TypedRateLimitingQueueConfig[string]{Clock: p.Clock}),
	}
	// It has neither been started nor given handlers: none of these fails.
	_ = s.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		s.unread.note(p.Clock.Now(), err)
		s.suspect()
	})
	add := func(object any) {
		if name, ok := s.clusterOf(keyOf(object)); ok {
			s.queue.Add(name)
		}
	}
	_, _ = s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: add})
	s.choosing = s.newChoosing()
	return s
}

// tweak has only those objects listed and watched that the program has to do with, where the
// others are private.
func (p *publisher) tweak() dynamicinformer.TweakListOptionsFunc {
	if !p.kind.Private {
		return nil
	}
	return func(options *metav1.ListOptions) { options.LabelSelector = p.kind.Selector }
}

// clusterOf returns the name of the cluster that the object of a key is for, if its name is one
// of this format.
func (p *publisher) clusterOf(key string) (string, bool) {
	_, name, err := cache.SplitMetaNamespaceKey(key)
	cluster, ok := strings.CutPrefix(name, p.kind.Prefix)
	return cluster, err == nil && ok && cluster != ""
}

func keyOf(object any) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return ""
	}
	return key
}

// queueAll has every cluster and every object looked at, and the endpoints asked of what there is
// while it is not known what a ClusterSelection has chosen.
func (s *session) queueAll() {
	clusters, err := s.lister.List(labels.Everything())
	if err != nil {
		return // a list from memory does not fail
	}
	for _, cluster := range clusters {
		s.queue.Add(cluster.Name)
	}
	for _, key := range s.informer.GetStore().ListKeys() {
		name, ok := s.clusterOf(key)
		if !ok {
			continue
		}
		s.queue.Add(name)
		if _, known := s.picks(name); !known {
			s.verifier.Queue.Add(name)
		}
	}
	s.queue.Add(sweep)
}

// unread notes that objects could not be listed or watched.
type unread struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

func (u *unread) note(now time.Time, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // watches end, and begin again
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.at, u.err = now, err
}

// lasting returns why objects can't be read, if it was tried in vain in the last minute:
// attempts come more often than that.
func (u *unread) lasting(now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil || now.Sub(u.at) > time.Minute {
		return nil
	}
	return u.err
}

package selection

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// settle is the time for which changes are collected before selections are looked at.
	settle = 5 * time.Second
	// soonest and latest bound the time until what failed is tried again.
	soonest, latest = time.Second, 30 * time.Second
	// persistent is how many attempts in a row must fail before that is said.
	persistent = 3
	// most is how many selections of a namespace are acted on: the oldest. Each takes memory
	// for each cluster.
	most = 100
)

var (
	// Resource is what selections are.
	Resource = operatorv1alpha1.SchemeGroupVersion.WithResource("clusterselections")
	// PlacementDecisions is what decisions are published as.
	PlacementDecisions = schema.GroupVersionResource{Group: inventory.GroupVersion.Group, Version: inventory.GroupVersion.Version, Resource: "placementdecisions"}
)

// session follows the selections of a namespace while it is open. But for what mu guards and the
// queue, all of it is the worker's alone.
type session struct {
	*Controller
	Target
	objects, placements   dynamic.ResourceInterface
	selections, published *followed
	queue                 workqueue.TypedRateLimitingInterface[string]
	programs              map[string]*program
	// admitted are the selections that are acted on, and stale says that others may be.
	admitted map[string]bool
	stale    atomic.Bool

	mu      sync.Mutex
	failing map[string]error
	ready   map[string]bool
}

// followed is an informer, with the newest error of reading.
type followed struct {
	cache.SharedIndexInformer
	unread
}

// trouble returns why objects can't be read; nil when they can.
func (f *followed) trouble(now time.Time) error {
	return f.lasting(now, f.LastSyncResourceVersion())
}

// newSession returns a session that has not begun.
func (c *Controller) newSession(target Target) *session {
	s := &session{
		Controller: c, Target: target,
		objects: c.Objects.Resource(Resource).Namespace(target.Namespace), placements: c.Objects.Resource(PlacementDecisions).Namespace(target.Namespace),
		programs: map[string]*program{}, failing: map[string]error{}, ready: map[string]bool{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[string](soonest, latest),
			workqueue.TypedRateLimitingQueueConfig[string]{Clock: c.Clock}),
	}
	s.stale.Store(true)
	s.selections = s.following(Resource, "", func(object *unstructured.Unstructured) {
		s.stale.Store(true)
		s.queue.Add(object.GetName())
	})
	_ = s.selections.SetTransform(trimSelection) // it has not been started
	s.published = s.following(PlacementDecisions, contract.NamespaceLabel(c.Registry)+"="+c.Namespace, func(object *unstructured.Unstructured) {
		if name := object.GetLabels()[inventory.DecisionKeyLabel]; name != "" {
			s.queue.Add(name)
		}
	})
	return s
}

// trimSelection drops what is not read of a selection before it is kept in memory.
func trimSelection(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		u.SetAnnotations(nil)
		u.SetManagedFields(nil)
	}
	return object, nil
}

// following returns an informer that has not begun, of objects in the namespace.
func (s *session) following(of schema.GroupVersionResource, selector string, each func(*unstructured.Unstructured)) *followed {
	f := &followed{SharedIndexInformer: dynamicinformer.NewFilteredDynamicInformer(s.Objects, of, s.Target.Namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.LabelSelector = selector
	}).Informer()}
	// It has neither been started nor given handlers: none of these fails.
	_ = f.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		f.note(s.Clock.Now(), f.LastSyncResourceVersion(), err)
	})
	changed := func(object any) {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if u, ok := object.(*unstructured.Unstructured); ok {
			each(u)
		}
	}
	_, _ = f.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: changed})
	return f
}

// run follows the selections until ctx ends.
func (s *session) run(ctx context.Context) {
	var running sync.WaitGroup
	defer func() {
		running.Wait()
		for name := range s.programs {
			s.drop(name)
		}
	}()
	defer s.queue.ShutDown()
	running.Go(func() { s.selections.RunWithContext(ctx) })
	running.Go(func() { s.published.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), s.selections.HasSynced) {
		return
	}
	running.Go(func() {
		for {
			name, ended := s.queue.Get()
			if ended {
				return
			}
			if ctx.Err() == nil {
				s.outcome(name, s.reconcile(ctx, name))
			}
			s.queue.Done(name)
		}
	})
	<-ctx.Done()
}

// queueAll has all selections looked at after a time.
func (s *session) queueAll(after time.Duration) {
	for _, key := range s.selections.GetStore().ListKeys() {
		if _, name, err := cache.SplitMetaNamespaceKey(key); err == nil {
			s.queue.AddAfter(name, after)
		}
	}
}

// outcome remembers how a selection went.
func (s *session) outcome(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.failing, name)
		s.queue.Forget(name)
		return
	}
	s.queue.AddRateLimited(name)
	if !apierrors.IsConflict(err) {
		s.failing[name] = err
	}
}

// stored returns a selection as it is known, for the caller to change; nil when there is none.
func (s *session) stored(name string) (*operatorv1alpha1.ClusterSelection, error) {
	object, exists, err := s.selections.GetStore().GetByKey(s.Namespace + "/" + name)
	if err != nil || !exists {
		return nil, err
	}
	out := &operatorv1alpha1.ClusterSelection{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(object.(*unstructured.Unstructured).DeepCopy().Object, out)
}

// admits reports whether a selection is one of those that are acted on: the oldest that are for
// this registry.
func (s *session) admits(name string) bool {
	if !s.stale.Swap(false) {
		return s.admitted[name]
	}
	var all []*unstructured.Unstructured
	for _, object := range s.selections.GetStore().List() {
		u := object.(*unstructured.Unstructured)
		registry, _, _ := unstructured.NestedString(u.Object, "spec", "registryRef", "name")
		namespace, _, _ := unstructured.NestedString(u.Object, "spec", "registryRef", "namespace")
		if registry == s.Registry && namespace == s.Controller.Namespace {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int {
		x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		if c := x.Compare(y.Time); c != 0 {
			return c
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	before := s.admitted
	s.admitted = map[string]bool{}
	for i, u := range all {
		s.admitted[u.GetName()] = i < most
		if was, known := before[u.GetName()]; known && was != s.admitted[u.GetName()] {
			s.queue.Add(u.GetName()) // to say so, or to let it in
		}
	}
	return s.admitted[name]
}

// judge says how the function is in the namespace.
func (s *session) judge() verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready, others := 0, 0
	for _, is := range s.ready {
		if is {
			ready++
		} else {
			others++
		}
	}
	s.Metrics.counted(s.Namespace, ready, others)
	if err := s.selections.trouble(s.Clock.Now()); err != nil {
		return verdict{contract.FunctionFailing, fmt.Sprintf("ClusterSelections of namespace %q can't be listed or watched: %v.", s.Namespace, err)}
	}
	if !s.selections.HasSynced() {
		return verdict{contract.FunctionStarting, fmt.Sprintf("Waiting for the ClusterSelections of namespace %q.", s.Namespace)}
	}
	for _, name := range slices.Sorted(maps.Keys(s.failing)) {
		if s.queue.NumRequeues(name) >= persistent {
			return verdict{contract.FunctionFailing, fmt.Sprintf("In namespace %q, the decisions of ClusterSelection %q can't be written: %v.", s.Namespace, name, s.failing[name])}
		}
	}
	return verdict{state: contract.FunctionRunning}
}

package ui

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/client/clientset/versioned"
)

// source is a resource that is followed: listed, watched, and shown as a view of each object.
type source struct {
	feed *feed
	kind string
	// client is asked whether it can send a list as a watch.
	client any
	object runtime.Object
	list   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// view returns the view of an object.
	view func(any) (name string, entry any)
	// renew is how often what is shown is made again, although nothing has changed.
	renew time.Duration
	// explain says of an error what to do.
	explain func(error) error
	// replaced is how often all objects were shown.
	replaced atomic.Int64
}

// sources are all that the page follows.
func sources(env *command.Env, feed *feed, registry versioned.Interface, host dynamic.Interface) []*source {
	clusters := registry.ClusterregistryV1beta1().Clusters()
	of := func(kind string, resource schema.GroupVersionResource, view func(*unstructured.Unstructured) any) *source {
		objects := host.Resource(resource).Namespace(env.Namespace())
		return &source{
			feed: feed, kind: kind, client: host, object: &unstructured.Unstructured{},
			list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return objects.List(ctx, o) },
			watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return objects.Watch(ctx, o)
			},
			view: func(object any) (string, any) {
				o := object.(*unstructured.Unstructured)
				return o.GetNamespace() + "/" + o.GetName(), view(o)
			},
			explain: func(err error) error { return env.Explain("follow the "+resource.Resource, command.OfHost, err) },
		}
	}
	registries := of(kindRegistries, hostcluster.Resource, registryOf)
	registries.renew = time.Minute
	return []*source{
		{
			feed: feed, kind: kindClusters, client: registry, object: &v1beta1.Cluster{},
			list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return clusters.List(ctx, o) },
			watch: clusters.Watch,
			view: func(object any) (string, any) {
				c := object.(*v1beta1.Cluster)
				return c.Name, rowOf(c)
			},
			explain: func(err error) error { return env.Explain("follow the clusters", command.OfRegistry, err) },
		},
		registries,
		of(kindBackups, operatorv1alpha1.SchemeGroupVersion.WithResource("clusterregistrybackups"), backupOf),
	}
}

// follow follows sources until the context ends. The function that it returns waits for that.
func follow(ctx context.Context, feed *feed, all []*source) func() {
	var running sync.WaitGroup
	silent := logr.Discard() // the page says what fails, and the terminal is the user's
	ctx = klog.NewContext(ctx, silent)
	for _, s := range all {
		feed.connect(s.kind, Loading, "")
		reflector := cache.NewReflectorWithOptions(s.listerWatcher(), s.object, s, cache.ReflectorOptions{Name: s.kind, Logger: &silent, ResyncPeriod: s.renew})
		running.Go(func() { reflector.RunWithContext(ctx) })
	}
	return running.Wait
}

// listerWatcher returns what the reflector asks. Each answer says how the connection is: the
// reflector itself tells no one that it can't watch, nor that it can again.
func (s *source) listerWatcher() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := s.list(ctx, options)
			s.heard(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := s.watch(ctx, options)
			if err != nil {
				s.heard(ctx, err)
				return nil, err
			}
			return s.observed(ctx, events, options.SendInitialEvents != nil && *options.SendInitialEvents), nil
		},
	}, s.client)
}

var errClosed = errors.New("the connection was closed at once")

// settled is how long a watch without events is open before it counts as one.
const settled = time.Second

// observed returns a watch that says how the connection is. That it was opened says nothing:
// client-go has a connection that breaks meanwhile be a watch without events that ends at once. Of
// a list as a watch, nothing is shown before its end.
func (s *source) observed(ctx context.Context, events watch.Interface, list bool) watch.Interface {
	before := s.replaced.Load()
	shown := func() bool { return !list || s.replaced.Load() != before }
	passed := make(chan watch.Event)
	out := watch.NewProxyWatcher(passed)
	go func() {
		defer close(passed)
		defer events.Stop()
		open := time.NewTimer(settled)
		defer open.Stop()
		for heard := false; ; {
			select {
			case <-out.StopChan():
				return
			case <-open.C:
				if heard = shown(); heard {
					s.heard(ctx, nil)
				} else {
					open.Reset(settled)
				}
			case event, more := <-events.ResultChan():
				if !more && !heard {
					s.heard(ctx, errClosed)
				}
				if !more {
					return
				}
				if event.Type != watch.Error && shown() {
					s.heard(ctx, nil)
					heard = true
				}
				select {
				case passed <- event:
				case <-out.StopChan():
					return
				}
			}
		}
	}()
	return out
}

// heard says how the source has answered.
func (s *source) heard(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil: // the command ends
	case err == nil:
		s.feed.connect(s.kind, Live, "")
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.IsInvalid(err):
		// It answers, and is listed or asked again; Invalid is a list as a watch to servers
		// that have none.
	case apierrors.IsForbidden(err), !s.feed.knows(s.kind) && (apierrors.IsNotFound(err) || meta.IsNoMatchError(err)):
		// An API that was there before is away for a while: the operator takes it away when no
		// server is left.
		s.feed.connect(s.kind, Absent, command.Plain(s.explain(err).Error()))
		s.feed.replace(s.kind, nil)
	default:
		s.feed.connect(s.kind, Lost, command.Plain(s.explain(err).Error()))
	}
}

// Add shows an object.
func (s *source) Add(object any) error {
	name, entry := s.view(object)
	s.feed.set(s.kind, name, entry)
	return nil
}

// Update shows an object as it is.
func (s *source) Update(object any) error { return s.Add(object) }

// Delete shows an object no longer.
func (s *source) Delete(object any) error {
	name, _ := s.view(object)
	s.feed.set(s.kind, name, nil)
	return nil
}

// Replace shows these objects and no others.
func (s *source) Replace(objects []any, _ string) error {
	entries := make(map[string]any, len(objects))
	for _, object := range objects {
		name, entry := s.view(object)
		entries[name] = entry
	}
	s.feed.replace(s.kind, entries)
	s.replaced.Add(1)
	return nil
}

// Resync shows again what depends on the time.
func (s *source) Resync() error {
	s.feed.again(s.kind)
	return nil
}

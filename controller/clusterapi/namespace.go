package clusterapi

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/controller/gate"
	"github.com/clusterregistry/operator/internal/contract"
)

// trouble is why Clusters of a namespace are not read, for people; the zero value is none.
type trouble struct {
	state   contract.FunctionState
	message string
	// barred says that this is no passing error: nothing more is read until it is resolved.
	barred bool
	// unserved says that Cluster API is not there.
	unserved bool
}

// namespace is what is known of a namespace whose Clusters are read.
type namespace struct {
	name string
	// decided is closed once it is known whether the namespace can be read, and what is in
	// it if it can.
	decided chan struct{}
	once    sync.Once
	// nudge asks for a look at once.
	nudge chan struct{}

	mu sync.Mutex
	// uid and labels are those of the namespace when it was last read.
	uid    types.UID
	labels map[string]string
	// store has the Clusters; nil while they are not read.
	store cache.Indexer
	// trouble is what the last look found, watching what the last list or watch failed with.
	trouble  trouble
	watching error
	// unserved counts looks in a row that found Cluster API missing.
	unserved int
}

func newNamespace(name string) *namespace {
	return &namespace{name: name, decided: make(chan struct{}), nudge: make(chan struct{}, 1)}
}

// view is a namespace at one moment.
type view struct {
	uid    types.UID
	labels map[string]string
	store  cache.Indexer
	// unserved says that Cluster API was missing twice in a row.
	unserved bool
}

func (n *namespace) view() view {
	n.mu.Lock()
	defer n.mu.Unlock()
	return view{uid: n.uid, labels: n.labels, store: n.store, unserved: n.unserved > 1}
}

// sources returns the Clusters that are known.
func (n *namespace) sources() (out []*clusterv1.Cluster) {
	store := n.view().store
	if store == nil {
		return nil
	}
	for _, object := range store.List() {
		out = append(out, object.(*clusterv1.Cluster))
	}
	return out
}

// problem returns why the namespace is not read as it should be.
func (n *namespace) problem() trouble {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.trouble != (trouble{}):
		return n.trouble
	case apierrors.IsForbidden(n.watching):
		return trouble{state: contract.FunctionRefused, message: fmt.Sprintf("Clusters of Cluster API in the namespace %[1]q may not be read: bind the role for it to the controller's ServiceAccount by a RoleBinding in that namespace: %[2]v.", n.name, n.watching)}
	case n.watching != nil:
		return trouble{state: contract.FunctionFailing, message: fmt.Sprintf("Clusters of Cluster API in the namespace %q can't be read: %v.", n.name, n.watching)}
	case n.store == nil:
		return trouble{state: contract.FunctionStarting, message: fmt.Sprintf("Waiting for the Clusters of Cluster API in the namespace %q.", n.name)}
	}
	return trouble{}
}

// look reads a namespace, and whether Cluster API is there. An error says that it is not
// known now.
func (c *Controller) look(ctx context.Context, n *namespace) trouble {
	found, err := c.permitted(ctx, n.name)
	if err != nil || found.Closed != "" {
		return unread(n, found.Closed, err)
	}
	n.mu.Lock()
	relabeled := n.uid != found.UID || !maps.Equal(n.labels, found.Labels)
	n.uid, n.labels = found.UID, found.Labels
	n.mu.Unlock()
	if relabeled {
		for _, source := range n.sources() {
			c.queue.Add(keyOf(source))
		}
	}
	served, err := c.Source.Served(ctx)
	if err != nil {
		return unread(n, "", fmt.Errorf("ask the host cluster whether Cluster API is there: %w", err))
	}
	c.Metrics.asked(served)
	return unserved(n, served)
}

// unread is the trouble of a namespace that can't or may not be read.
func unread(n *namespace, closed string, err error) trouble {
	if err != nil {
		return trouble{state: contract.FunctionFailing, message: fmt.Sprintf("Namespace %q: %v.", n.name, err)}
	}
	n.mu.Lock()
	n.unserved = 0
	n.mu.Unlock()
	return trouble{state: contract.FunctionRefused, message: closed + ". Entries from it stay.", barred: true}
}

// unserved is the trouble when Cluster API is missing.
func unserved(n *namespace, served Served) trouble {
	n.mu.Lock()
	defer n.mu.Unlock()
	if served == ServedYes {
		n.unserved = 0
		return trouble{}
	}
	n.unserved++
	out := trouble{state: contract.FunctionStarting, barred: true, unserved: true}
	switch served {
	case ServedOther:
		out.state, out.message = contract.FunctionRefused, "Cluster API is there, and does not serve cluster.x-k8s.io/v1beta2: upgrade it to v1.11 or later."
	case ServedEnding:
		out.state, out.message = contract.FunctionFailing, "The CRD clusters.cluster.x-k8s.io is being deleted, and all Clusters with it: entries stay."
	default:
		out.message = "Waiting for Cluster API: cluster.x-k8s.io/v1beta2 is not served; install it, such as by clusterctl init. Entries stay."
	}
	return out
}

// permitted reads whether a namespace is open to this registry.
func (c *Controller) permitted(ctx context.Context, name string) (gate.Answer, error) {
	return gate.Gate{Namespaces: c.Host.CoreV1().Namespaces(), Registry: c.Registry, Namespace: c.Namespace}.Ask(ctx, name)
}

// follow reads the Clusters of a namespace while they may be read, until ctx ends.
func (c *Controller) follow(ctx context.Context, n *namespace) {
	var stop func()
	for ctx.Err() == nil {
		why := c.look(ctx, n)
		if why.barred && stop != nil {
			stop()
			stop = nil
		}
		n.mu.Lock()
		n.trouble = why
		twice := n.unserved == 2
		n.mu.Unlock()
		switch {
		case why != (trouble{}):
			n.once.Do(func() { close(n.decided) })
		case stop == nil:
			stop = c.read(ctx, n)
		}
		if twice {
			c.enqueueEntries(n.name)
		}
		c.dirty()
		select {
		case <-ctx.Done():
		case <-c.Clock.After(c.Period):
		case <-n.nudge:
		}
	}
	if stop != nil {
		stop()
	}
}

// read begins to list and watch the Clusters of a namespace. The function that it returns
// ends that, and forgets them.
func (c *Controller) read(ctx context.Context, n *namespace) func() {
	ctx, cancel := context.WithCancel(ctx)
	made, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				list, err := c.Source.List(ctx, n.name, options)
				c.watched(ctx, n, err)
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				w, err := c.Source.Watch(ctx, n.name, options)
				c.watched(ctx, n, err)
				return w, err
			},
		},
		ObjectType: &clusterv1.Cluster{}, Transform: trimSource, Indexers: c.indexers(),
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    c.sourceChanged,
			UpdateFunc: func(_, now any) { c.sourceChanged(now) },
			DeleteFunc: c.sourceDeleted,
		},
	})
	store := made.(cache.Indexer) // it has indexers
	var group sync.WaitGroup
	group.Go(func() { controller.RunWithContext(ctx) })
	group.Go(func() {
		if !cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
			return
		}
		n.mu.Lock()
		n.store, n.watching = store, nil
		n.mu.Unlock()
		n.once.Do(func() { close(n.decided) })
		for _, source := range n.sources() { // events before this were of a namespace not read yet
			c.queue.Add(keyOf(source))
		}
		c.enqueueEntries(n.name)
		c.dirty()
	})
	return func() {
		cancel()
		group.Wait()
		n.mu.Lock()
		n.store, n.watching = nil, nil
		n.mu.Unlock()
	}
}

// watched notes how a list or watch of a namespace went. One that fails may mean that
// Cluster API is gone.
func (c *Controller) watched(ctx context.Context, n *namespace, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	n.mu.Lock()
	n.watching = err
	n.mu.Unlock()
	if err != nil { // no other namespace waits for this one
		n.once.Do(func() { close(n.decided) })
	}
	if apierrors.IsNotFound(err) {
		select {
		case n.nudge <- struct{}{}:
		default:
		}
	}
	c.dirty()
}

func keyOf(source *clusterv1.Cluster) types.NamespacedName {
	return types.NamespacedName{Namespace: source.Namespace, Name: source.Name}
}

func (c *Controller) sourceChanged(object any) {
	if source, ok := object.(*clusterv1.Cluster); ok {
		c.queue.Add(keyOf(source))
	}
}

// sourceDeleted remembers of a Cluster whether it was deleted for a move: its last state
// is all that says so.
func (c *Controller) sourceDeleted(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	source, ok := object.(*clusterv1.Cluster)
	if !ok {
		return
	}
	if moving(source) {
		c.mu.Lock()
		c.moved[source.UID] = true
		c.mu.Unlock()
	}
	c.queue.Add(keyOf(source))
	if name, err := c.Name.Name(source.Namespace, source.Name); err == nil {
		c.wake(name)
	}
}

// moving reports whether a Cluster is about to be deleted by "clusterctl move".
func moving(source *clusterv1.Cluster) bool {
	_, ok := source.Annotations[moveAnnotation]
	return ok
}

// enqueueEntries looks at all entries of Clusters in a namespace.
func (c *Controller) enqueueEntries(namespace string) {
	for _, entry := range c.ours() {
		if key, ours := sourceOf(entry); ours && key.Namespace == namespace {
			c.queue.Add(key)
		}
	}
}

package export

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	lister "github.com/clusterregistry/operator/client/listers/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/clusterprofile"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/controller/labelkeys"
	"github.com/clusterregistry/operator/controller/probe"
	"github.com/clusterregistry/operator/internal/contract"
)

// bench is a session of namespace "a" in a host cluster and a registry of this process. Time
// passes when a test says so.
type bench struct {
	*session
	t     *testing.T
	time  *testingclock.FakeClock
	queue *queue
	host  *host
	// entries are what the informer has of the registry, and live what the registry has.
	entries cache.Indexer
	live    map[string]*v1beta1.Cluster
	// answers are the results of probes by URL, where it is not that a server answers; asked
	// are the URLs that were, and verifications those that are to be.
	answers       map[string]probe.Result
	asked         []string
	verifications *queue
	// trouble is why the registry can't be watched, and refusal why it can't be asked.
	trouble, refusal error
}

var (
	source   = format.Source{Registry: "hub", Namespace: "registries"}
	profiles = clusterprofile.Format{Source: source}
	target   = format.Target{Namespace: "a", Labels: allowed("tier", "example.com/*"), Providers: []string{"secretreader", "tokens", "kubeconfig-secretreader", "gke", "sso", "kubefed", "b", "c", "d", "e", "f", "g", "h", "i", "other"}}
)

// newBench returns one of profiles.
func newBench(t *testing.T, selector string) *bench {
	t.Helper()
	return newBenchOf(t, selector, target, profiles)
}

func newBenchOf(t *testing.T, selector string, in format.Target, of format.Format) *bench {
	t.Helper()
	b := &bench{t: t, time: testingclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), entries: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), live: map[string]*v1beta1.Cluster{}, answers: map[string]probe.Result{}}
	b.queue = &queue{clock: b.time, failures: map[string]int{}}
	b.host = &host{bench: b, store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	c := &Controller{verdicts: map[string]verdict{}, lister: lister.NewClusterLister(b.entries), Config: Config{
		Source: source, Period: Period, Clock: b.time, Clusters: registry{b: b}, Say: func(contract.FunctionState, string) {},
		Unwatched: func() error { return b.trouble },
	}}
	c.Probe = func(_ context.Context, asked probe.Target) probe.Result {
		b.asked = append(b.asked, asked.Endpoint.URL)
		if answer, ok := b.answers[asked.Endpoint.URL]; ok {
			return answer
		}
		return probe.Result{Outcome: probe.Ready, Reason: probe.ReasonReady}
	}
	b.verifications = &queue{clock: b.time, failures: map[string]int{}}
	p := &publisher{Controller: c, Target: Target{Target: in, Format: of}, kind: of.Kind(), objects: b.host}
	p.Selector = parsed
	c.publishers = []*publisher{p}
	b.session = p.newSession()
	p.session = b.session
	b.restart()
	_ = b.host.store.AddIndexers(b.indexers())
	b.session.queue, b.informer = b.queue, stored{store: b.host.store}
	return b
}

// restart has the verifier know of no endpoint, as in another process.
func (b *bench) restart() {
	b.verifier = b.newVerifier()
	b.verifier.Queue.ShutDown()
	b.verifier.Queue = b.verifications
}

// stored is an informer whose store a test fills.
type stored struct {
	cache.SharedIndexInformer
	store cache.Indexer
}

func (s stored) GetStore() cache.Store { return s.store }

func (s stored) GetIndexer() cache.Indexer { return s.store }

func (s stored) HasSynced() bool { return true }

// put writes entries to the registry, and drop deletes some.
func (b *bench) put(clusters ...*v1beta1.Cluster) {
	for _, cluster := range clusters {
		b.live[cluster.Name] = cluster
		_ = b.entries.Add(cluster)
		b.changed(cluster)
	}
	b.settle()
}

func (b *bench) drop(names ...string) {
	for _, name := range names {
		gone := b.live[name]
		_ = b.entries.Delete(gone)
		delete(b.live, name)
		b.changed(gone)
	}
	b.settle()
}

// settle lets the worker do what there is to do now.
func (b *bench) settle() {
	for range 10000 {
		if name, ok := b.verifications.next(); ok {
			b.verifier.One(context.Background(), name)
			continue
		}
		name, ok := b.queue.next()
		if !ok {
			return
		}
		b.one(context.Background(), name)
	}
	b.t.Fatal("the worker is never done")
}

// pass lets time pass, a second at a time, with a look at the namespace every 10 seconds.
func (b *bench) pass(d time.Duration) {
	for end := b.time.Now().Add(d); b.time.Now().Before(end); {
		b.time.Step(time.Second)
		if b.time.Now().Unix()%10 == 0 {
			b.queue.Add(sweep)
		}
		b.settle()
	}
}

// writesOf returns the writes since the last call.
func (b *bench) writesOf() []string {
	out := b.host.log
	b.host.log = nil
	return out
}

// profile returns a profile as it is in the host cluster.
func (b *bench) profile(name string) *v1alpha1.ClusterProfile {
	b.t.Helper()
	object, err := b.stored(name)
	if err != nil {
		b.t.Fatal(err)
	}
	if object == nil {
		return nil
	}
	p := &v1alpha1.ClusterProfile{}
	content, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(content, p)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// complete reports whether the profile of a cluster is all that it is to be.
func (b *bench) complete(name string) bool {
	b.t.Helper()
	have, err := b.stored(name)
	if err != nil || have == nil {
		b.t.Fatalf("there is no profile %q: %v", name, err)
	}
	want, why := b.want(b.live[name], have)
	if why != nil {
		b.t.Fatalf("the profile of %q is withheld: %+v", name, why)
	}
	changes, err := want.Changes(have)
	if err != nil {
		b.t.Fatal(err)
	}
	return len(changes) == 0
}

// member returns a cluster that has all that a profile shows.
func member(name string, change ...func(*v1beta1.Cluster)) *v1beta1.Cluster {
	c := &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), Labels: map[string]string{"tier": "gold", "secret": "x"}},
		Spec: v1beta1.ClusterSpec{
			Endpoints: []v1beta1.Endpoint{{Name: "main", URL: "https://" + name + ".example.com:6443", CABundle: []byte("CA")}},
			Access:    []v1beta1.Access{{Name: "tokens", Audience: v1beta1.AudienceController, Provider: &v1beta1.ProviderAccess{Type: "secretreader", Config: map[string]string{"clusterName": name}}}},
		},
		Status: &v1beta1.ClusterStatus{
			Version:    v1beta1.ClusterVersion{Kubernetes: "v1.37.1"},
			Conditions: []metav1.Condition{{Type: "ControlPlaneHealthy", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Date(2025, 2, 1, 0, 0, 0, 0, time.UTC)}},
			Properties: []v1beta1.Property{{Name: "region", Value: "eu"}},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func version1(v string) func(*v1beta1.Cluster) {
	return func(c *v1beta1.Cluster) { c.Status.Version.Kubernetes = v }
}

// registry is asked for single clusters only.
type registry struct {
	typed.ClusterInterface
	b *bench
}

func (r registry) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1beta1.Cluster, error) {
	if r.b.refusal != nil {
		return nil, r.b.refusal
	}
	if c, ok := r.b.live[name]; ok {
		return c, nil
	}
	return nil, apierrors.NewNotFound(v1beta1.Resource("clusters"), name)
}

// host takes profiles as the API server of the host cluster does, as far as this package
// uses it: what it applies is merged, and its times are the clock's.
type host struct {
	dynamic.ResourceInterface
	bench *bench
	store cache.Indexer
	// log has the writes, and fail makes some of them fail; unlisted is why nothing is listed.
	log      []string
	fail     func(write string) error
	unlisted error
	revision int
}

func (h *host) write(write string) error {
	if h.fail != nil {
		if err := h.fail(write); err != nil {
			return err
		}
	}
	h.log = append(h.log, write)
	return nil
}

func (h *host) save(object *unstructured.Unstructured) *unstructured.Unstructured {
	h.revision++
	object.SetResourceVersion(fmt.Sprint(h.revision))
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		_ = h.store.Delete(object)
	} else {
		_ = h.store.Add(object)
	}
	if name, ok := h.bench.clusterOf(object.GetName()); ok {
		h.bench.queue.Add(name)
	}
	return object
}

func (h *host) Create(_ context.Context, object *unstructured.Unstructured, _ metav1.CreateOptions, _ ...string) (*unstructured.Unstructured, error) {
	if err := h.write("create " + object.GetName()); err != nil {
		return nil, err
	}
	if _, exists, _ := h.store.Get(object); exists {
		return nil, apierrors.NewAlreadyExists(clusterprofile.Resource.GroupResource(), object.GetName())
	}
	object = object.DeepCopy()
	object.SetUID(types.UID(fmt.Sprintf("%s-%d", object.GetName(), h.revision)))
	return h.save(object), nil
}

func (h *host) Apply(_ context.Context, name string, object *unstructured.Unstructured, options metav1.ApplyOptions, subresources ...string) (*unstructured.Unstructured, error) {
	part := "main"
	if len(subresources) > 0 {
		part = subresources[0]
	}
	if err := h.write("apply " + part + " " + name); err != nil {
		return nil, err
	}
	found, exists, _ := h.store.GetByKey("a/" + name)
	if !exists {
		return nil, apierrors.NewConflict(clusterprofile.Resource.GroupResource(), name, fmt.Errorf("it is gone"))
	}
	have := found.(*unstructured.Unstructured).DeepCopy()
	if version := object.GetResourceVersion(); object.GetUID() != have.GetUID() || version != "" && version != have.GetResourceVersion() {
		return nil, apierrors.NewConflict(clusterprofile.Resource.GroupResource(), name, fmt.Errorf("it was changed"))
	}
	if part == "status" {
		have.Object["status"] = object.DeepCopy().Object["status"]
	} else {
		all := have.GetLabels()
		maps.Copy(all, object.GetLabels())
		have.SetLabels(all)
		have.SetOwnerReferences(object.GetOwnerReferences())
		have.SetAnnotations(object.GetAnnotations())
		for _, field := range []string{"spec", "data"} {
			if content, ok := object.DeepCopy().Object[field]; ok {
				have.Object[field] = content
			}
		}
	}
	subresource := ""
	if part == "status" {
		subresource = part
	}
	now := metav1.NewTime(h.bench.time.Now())
	fields := slices.DeleteFunc(have.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.Subresource == subresource })
	have.SetManagedFields(append(fields, metav1.ManagedFieldsEntry{Manager: options.FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: subresource, Time: &now}))
	return h.save(have), nil
}

// Patch takes the JSON patch of one field of a provider alone.
func (h *host) Patch(_ context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, subresources ...string) (*unstructured.Unstructured, error) {
	if err := h.write("patch " + strings.Join(subresources, "/") + " " + name); err != nil {
		return nil, err
	}
	found, exists, _ := h.store.GetByKey("a/" + name)
	if !exists {
		return nil, apierrors.NewNotFound(clusterprofile.Resource.GroupResource(), name)
	}
	have := found.(*unstructured.Unstructured).DeepCopy()
	var operations []struct{ Op, Path, Value string }
	if err := json.Unmarshal(patch, &operations); err != nil {
		return nil, err
	}
	if len(operations) != 2 || operations[0].Path != "/metadata/resourceVersion" || operations[0].Value != have.GetResourceVersion() || operations[1].Op != "remove" {
		return nil, fmt.Errorf("the patch %s does not fit", patch)
	}
	path := strings.Split(strings.TrimPrefix(operations[1].Path, "/"), "/")
	providers, _, _ := unstructured.NestedSlice(have.Object, path[:2]...)
	at, err := strconv.Atoi(path[2])
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(providers[at].(map[string]any), path[3:]...)
	if err := unstructured.SetNestedSlice(have.Object, providers, path[:2]...); err != nil {
		return nil, err
	}
	return h.save(have), nil
}

func (h *host) Delete(_ context.Context, name string, options metav1.DeleteOptions, _ ...string) error {
	if err := h.write("delete " + name); err != nil {
		return err
	}
	found, exists, _ := h.store.GetByKey("a/" + name)
	if !exists {
		return apierrors.NewNotFound(clusterprofile.Resource.GroupResource(), name)
	}
	object := found.(*unstructured.Unstructured).DeepCopy()
	if p := options.Preconditions; p == nil || *p.UID != object.GetUID() || *p.ResourceVersion != object.GetResourceVersion() {
		return apierrors.NewConflict(clusterprofile.Resource.GroupResource(), name, fmt.Errorf("it was changed"))
	}
	now := metav1.NewTime(h.bench.time.Now())
	object.SetDeletionTimestamp(&now)
	h.save(object)
	return nil
}

// List lists what labels select.
func (h *host) List(_ context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if h.unlisted != nil {
		return nil, h.unlisted
	}
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, err
	}
	out := &unstructured.UnstructuredList{}
	for _, object := range h.store.List() {
		if is := object.(*unstructured.Unstructured); selector.Matches(labels.Set(is.GetLabels())) {
			out.Items = append(out.Items, *is.DeepCopy())
		}
	}
	return out, nil
}

// edit changes a profile as a person does, and remove deletes it.
func (h *host) edit(name string, change func(*unstructured.Unstructured)) {
	found, exists, _ := h.store.GetByKey("a/" + name)
	if !exists {
		h.bench.t.Fatalf("there is no profile %q", name)
	}
	object := found.(*unstructured.Unstructured).DeepCopy()
	change(object)
	h.save(object)
	h.bench.settle()
}

func (h *host) remove(name string) {
	h.edit(name, func(object *unstructured.Unstructured) {
		now := metav1.NewTime(h.bench.time.Now())
		object.SetDeletionTimestamp(&now)
	})
}

// queue is one without goroutines: next returns what is to be done by now.
type queue struct {
	clock    *testingclock.FakeClock
	waiting  []waiting
	failures map[string]int
}

type waiting struct {
	name string
	at   time.Time
}

func (q *queue) next() (string, bool) {
	for i, w := range q.waiting {
		if !w.at.After(q.clock.Now()) {
			q.waiting = slices.DeleteFunc(slices.Delete(q.waiting, i, i+1), func(other waiting) bool {
				return other.name == w.name && !other.at.After(q.clock.Now())
			})
			return w.name, true
		}
	}
	return "", false
}

func (q *queue) Add(name string) { q.AddAfter(name, 0) }
func (q *queue) AddAfter(name string, d time.Duration) {
	q.waiting = append(q.waiting, waiting{name, q.clock.Now().Add(d)})
}
func (q *queue) AddRateLimited(name string) {
	q.failures[name]++
	q.AddAfter(name, min(soonest<<min(q.failures[name], 10), latest))
}
func (q *queue) Forget(name string)          { delete(q.failures, name) }
func (q *queue) NumRequeues(name string) int { return q.failures[name] }
func (q *queue) Len() int                    { return 0 }
func (q *queue) Get() (string, bool)         { return "", true }
func (q *queue) Done(string)                 {}
func (q *queue) ShutDown()                   {}
func (q *queue) ShutDownWithDrain()          {}
func (q *queue) ShuttingDown() bool          { return false }

// allowed returns labels that are copied.
func allowed(keys ...string) labelkeys.AllowList {
	out, err := labelkeys.Parse(keys)
	if err != nil {
		panic(err)
	}
	return out
}

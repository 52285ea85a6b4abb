package clusterapi

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	hostfake "k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	apply "github.com/clusterregistry/operator/client/applyconfiguration/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/clientset/versioned/fake"
	typed "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/client/informers"
	"github.com/clusterregistry/operator/internal/contract"
)

// fakeSource is Cluster API with what a test puts in.
type fakeSource struct {
	served  Served
	objects map[types.NamespacedName]*clusterv1.Cluster
	err     error
	asked   int
}

func (f *fakeSource) Served(context.Context) (Served, error) { f.asked++; return f.served, f.err }

func (f *fakeSource) Get(_ context.Context, namespace, name string) (*clusterv1.Cluster, error) {
	f.asked++
	if f.err != nil {
		return nil, f.err
	}
	if object := f.objects[types.NamespacedName{Namespace: namespace, Name: name}]; object != nil {
		return object.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: "cluster.x-k8s.io", Resource: "clusters"}, name)
}

func (f *fakeSource) List(context.Context, string, metav1.ListOptions) (*clusterv1.ClusterList, error) {
	list := &clusterv1.ClusterList{}
	for _, object := range f.objects {
		list.Items = append(list.Items, *object.DeepCopy())
	}
	return list, f.err
}

func (f *fakeSource) Watch(context.Context, string, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), f.err
}

// applying keeps what is applied to a status as it is: the fake has no schema to merge by.
type applying struct{ typed.ClusterInterface }

func (a applying) ApplyStatus(ctx context.Context, applied *apply.ClusterApplyConfiguration, _ metav1.ApplyOptions) (*v1beta1.Cluster, error) {
	stored, err := a.Get(ctx, *applied.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(applied.Status)
	if err != nil {
		return nil, err
	}
	stored.Status = &v1beta1.ClusterStatus{}
	if err := json.Unmarshal(content, stored.Status); err != nil {
		return nil, err
	}
	return a.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
}

const nsUID = types.UID("namespace-uid")

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// bench is a controller of one namespace, "a", on fakes.
type bench struct {
	*Controller
	t        *testing.T
	host     *hostfake.Clientset
	registry *fake.Clientset
	source   *fakeSource
	clock    *testingclock.FakeClock
}

func newBench(t *testing.T, change func(*Config), objects ...runtime.Object) *bench {
	t.Helper()
	b := &bench{t: t, source: &fakeSource{served: ServedYes, objects: map[types.NamespacedName]*clusterv1.Cluster{}}, clock: testingclock.NewFakeClock(begin)}
	var entries, host []runtime.Object
	for _, object := range objects {
		switch o := object.(type) {
		case *v1beta1.Cluster:
			if o.UID == "" {
				o.UID = types.UID("entry-" + o.Name)
			}
			o.ResourceVersion = "1"
			entries = append(entries, o)
		case *clusterv1.Cluster:
			b.source.objects[keyOf(o)] = o
		default:
			host = append(host, o)
		}
	}
	if len(host) == 0 || !isNamespace(host) {
		host = append(host, letIn(nil))
	}
	b.host, b.registry = hostfake.NewSimpleClientset(host...), fake.NewSimpleClientset(entries...)
	b.registry.PrependReactor("create", "clusters", func(action kubetesting.Action) (bool, runtime.Object, error) {
		made := action.(kubetesting.CreateAction).GetObject().(*v1beta1.Cluster)
		made.UID, made.ResourceVersion = types.UID("entry-"+made.Name), "1"
		return false, nil, nil
	})
	template, err := ParseTemplate("{name}")
	if err != nil {
		t.Fatal(err)
	}
	list, err := ParseAllowList([]string{"env", "example.com/*"})
	if err != nil {
		t.Fatal(err)
	}
	config := Config{
		Source: b.source, Host: b.host, Clusters: applying{b.registry.ClusterregistryV1beta1().Clusters()},
		Informer: informers.NewSharedInformerFactory(b.registry, 0).Clusterregistry().V1beta1().Clusters(),
		Registry: "hub", Namespace: "registries", Namespaces: []string{"a"}, Selector: labels.Everything(), Name: template, Labels: list,
		Policy: PolicyRetain, Grace: time.Hour, Period: 30 * time.Second, Clock: b.clock, Say: func(contract.FunctionState, string) {},
	}
	if change != nil {
		change(&config)
	}
	if b.Controller, err = New(config); err != nil {
		t.Fatal(err)
	}
	n := b.namespaces["a"]
	n.uid, n.store = nsUID, cache.NewIndexer(cache.MetaNamespaceKeyFunc, b.indexers())
	for _, object := range objects {
		if namespace, ok := object.(*corev1.Namespace); ok {
			n.labels = namespace.Labels
		}
	}
	for _, object := range b.source.objects {
		b.see(object)
	}
	return b
}

func isNamespace(objects []runtime.Object) bool {
	for _, object := range objects {
		if _, ok := object.(*corev1.Namespace); ok {
			return true
		}
	}
	return false
}

// letIn is the namespace "a", which lets the registry in.
func letIn(more map[string]string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: nsUID, Labels: map[string]string{"registry.clusterregistry.io/hub": "registries"}}}
	for key, value := range more {
		n.Labels[key] = value
	}
	return n
}

// see puts a Cluster where the informer has it, and the host cluster too.
func (b *bench) see(source *clusterv1.Cluster) {
	b.t.Helper()
	b.source.objects[keyOf(source)] = source
	kept, err := trimSource(source.DeepCopy())
	if err == nil {
		err = b.namespaces["a"].store.Add(kept)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// lose takes a Cluster away from both, as the informer tells it.
func (b *bench) lose(source *clusterv1.Cluster) {
	b.t.Helper()
	delete(b.source.objects, keyOf(source))
	kept, err := trimSource(source.DeepCopy())
	if err == nil {
		err = b.namespaces["a"].store.Delete(kept)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	b.sourceDeleted(kept)
}

// run works on a Cluster with what the registry has now.
func (b *bench) run(name string) error {
	b.t.Helper()
	list, err := b.registry.ClusterregistryV1beta1().Clusters().List(b.t.Context(), metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	var objects []any
	for i := range list.Items {
		entry, err := trimEntry(&list.Items[i])
		if err != nil {
			b.t.Fatal(err)
		}
		objects = append(objects, entry)
	}
	if err := b.entries.Replace(objects, ""); err != nil {
		b.t.Fatal(err)
	}
	b.registry.ClearActions()
	return b.reconcile(b.t.Context(), types.NamespacedName{Namespace: "a", Name: name})
}

// must is run, which succeeds.
func (b *bench) must(name string) {
	b.t.Helper()
	if err := b.run(name); err != nil {
		b.t.Fatal(err)
	}
}

// mustMiss is must of a Cluster that has been missed for long enough.
func (b *bench) mustMiss(name string) {
	b.t.Helper()
	b.must(name)
	b.clock.Step(confirm)
	b.must(name)
}

// east is the entry of that name; nil for none.
func (b *bench) east() *v1beta1.Cluster {
	b.t.Helper()
	entry, err := b.registry.ClusterregistryV1beta1().Clusters().Get(b.t.Context(), "east", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return entry
}

// writes lists what the last run wrote to the registry.
func (b *bench) writes() (out []string) {
	for _, action := range b.registry.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			out = append(out, fmt.Sprintf("%s %s", verb, action.GetSubresource()))
		}
	}
	return out
}

// joinedOf says how an entry's condition Joined is, as status and reason.
func joinedOf(entry *v1beta1.Cluster) string {
	for _, c := range statusOf(entry).Conditions {
		if c.Type == v1beta1.ConditionJoined {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// cluster is one of Cluster API, of the namespace "a", as its controllers write it.
func cluster(name string, changes ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	out := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(begin.Add(-time.Hour)), Labels: map[string]string{"env": "prod", "team": "x"}},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: name + ".example.com", Port: 6443}, Topology: clusterv1.Topology{Version: "v1.37.1"}},
		Status: clusterv1.ClusterStatus{Conditions: []metav1.Condition{
			{Type: "Available", Status: metav1.ConditionTrue, Reason: "Available", LastTransitionTime: metav1.NewTime(begin.Add(-time.Minute))},
			{Type: "Paused", Status: metav1.ConditionFalse, Reason: "NotPaused", LastTransitionTime: metav1.NewTime(begin.Add(-time.Minute))},
			{Type: "IdentityVerified", Status: metav1.ConditionTrue, Reason: "Forged", LastTransitionTime: metav1.NewTime(begin.Add(-time.Minute))},
		}},
	}
	for _, change := range changes {
		change(out)
	}
	return out
}

// entryOf is the entry of a Cluster of that name and UID.
func entryOf(name, uid string, changes ...func(*v1beta1.Cluster)) *v1beta1.Cluster {
	out := &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{NamespaceAnnotation: string(nsUID)}},
		Spec: v1beta1.ClusterSpec{
			Manager:   &v1beta1.Manager{Name: Manager},
			SourceRef: &v1beta1.SourceReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Namespace: "a", Name: name, UID: uid},
			Endpoints: []v1beta1.Endpoint{{Name: endpointName, URL: "https://" + name + ".example.com:6443"}},
		},
	}
	for _, change := range changes {
		change(out)
	}
	return out
}

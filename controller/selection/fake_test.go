package selection

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// bench is a session of namespace "team" in a host cluster and a registry of this process. The
// informers have what the host cluster has when a test lets the session look.
type bench struct {
	*session
	t       *testing.T
	time    *testingclock.FakeClock
	host    *dynamicfake.FakeDynamicClient
	trouble error
	served  bool
	version string
	uids    int
}

// stored is an informer that a test fills.
type stored struct {
	cache.SharedIndexInformer
	store  cache.Store
	synced func() bool
	// version is the newest that was read.
	version *string
}

func (s stored) GetStore() cache.Store { return s.store }
func (s stored) HasSynced() bool       { return s.synced() }

func (s stored) LastSyncResourceVersion() string { return *s.version }

func newBench(t *testing.T, target Target) *bench {
	t.Helper()
	b := &bench{t: t, time: testingclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), served: true}
	if target.Selector == nil {
		target.Selector = labels.Everything()
	}
	target.Namespace = "team"
	b.host = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{Resource: "ClusterSelectionList", PlacementDecisions: "PlacementDecisionList"})
	c := &Controller{fleet: newFleet(), sessions: map[string]*session{}, verdicts: map[string]verdict{}, Config: Config{
		Registry: "hub", Namespace: "registries", Targets: []Target{target}, Objects: b.host, Clock: b.time,
		Unwatched: func() error { return b.trouble }, Say: func(contract.FunctionState, string) {},
	}}
	b.session = c.newSession(target)
	t.Cleanup(b.queue.ShutDown)
	yes := func() bool { return true }
	b.selections.SharedIndexInformer = stored{store: cache.NewStore(cache.MetaNamespaceKeyFunc), synced: yes, version: &b.version}
	b.published.SharedIndexInformer = stored{store: cache.NewStore(cache.MetaNamespaceKeyFunc), synced: func() bool { return b.served }, version: &b.version}
	return b
}

// cluster writes an entry to the registry.
func (b *bench) cluster(name string, change ...func(*v1beta1.Cluster)) {
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": "gold"}}}
	for _, f := range change {
		f(c)
	}
	b.fleet.put(c)
}

func silver(c *v1beta1.Cluster) { c.Labels["tier"] = "silver" }

func in(set string) func(*v1beta1.Cluster) {
	return func(c *v1beta1.Cluster) { c.Spec.ClusterSet = set }
}

// create makes a selection as the API server would.
func (b *bench) create(name, where string, change ...func(*operatorv1alpha1.ClusterSelection)) {
	b.t.Helper()
	b.uids++
	s := &operatorv1alpha1.ClusterSelection{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorv1alpha1.SchemeGroupVersion.String(), Kind: "ClusterSelection"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team", UID: types.UID(fmt.Sprint("uid-", b.uids)), Generation: 1, CreationTimestamp: metav1.Time{Time: b.time.Now().Add(time.Duration(b.uids) * time.Second)}},
		Spec: operatorv1alpha1.ClusterSelectionSpec{
			RegistryRef: operatorv1alpha1.RegistryReference{Name: "hub", Namespace: "registries"}, Where: where, Limit: 1000, StabilizationSeconds: ptr.To[int32](300),
		},
	}
	for _, f := range change {
		f(s)
	}
	_, err := b.host.Resource(Resource).Namespace("team").Create(b.t.Context(), b.object(s), metav1.CreateOptions{})
	b.must(err)
}

func (b *bench) object(of any) *unstructured.Unstructured {
	b.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	b.must(err)
	return &unstructured.Unstructured{Object: content}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// edit changes a spec, as a user.
func (b *bench) edit(name string, change func(*operatorv1alpha1.ClusterSelection)) {
	b.t.Helper()
	s := b.get(name)
	change(s)
	s.Generation++
	_, err := b.host.Resource(Resource).Namespace("team").Update(b.t.Context(), b.object(s), metav1.UpdateOptions{})
	b.must(err)
}

func (b *bench) remove(name string) {
	b.t.Helper()
	b.must(b.host.Resource(Resource).Namespace("team").Delete(b.t.Context(), name, metav1.DeleteOptions{}))
}

// get returns a selection as the host cluster has it.
func (b *bench) get(name string) *operatorv1alpha1.ClusterSelection {
	b.t.Helper()
	live, err := b.host.Resource(Resource).Namespace("team").Get(b.t.Context(), name, metav1.GetOptions{})
	b.must(err)
	out := &operatorv1alpha1.ClusterSelection{}
	b.must(runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, out))
	return out
}

// look lets the informers catch up, and the session look at a selection.
func (b *bench) look(name string) error {
	b.t.Helper()
	for resource, store := range map[schema.GroupVersionResource]cache.Store{Resource: b.selections.GetStore(), PlacementDecisions: b.published.GetStore()} {
		list, err := b.host.Resource(resource).Namespace("team").List(b.t.Context(), metav1.ListOptions{})
		b.must(err)
		var all []any
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
		b.must(store.Replace(all, ""))
	}
	b.stale.Store(true)
	err := b.reconcile(context.Background(), name)
	b.outcome(name, err)
	return err
}

// want looks at a selection, and fails unless it has these decisions and this reason of Ready.
func (b *bench) want(name, decisions, reason string) *operatorv1alpha1.ClusterSelection {
	b.t.Helper()
	b.must(b.look(name))
	s := b.get(name)
	var got []string
	for _, d := range s.Status.Decisions {
		got = append(got, d.ClusterName)
	}
	ready := meta.FindStatusCondition(s.Status.Conditions, operatorv1alpha1.SelectionConditionReady)
	if strings.Join(got, " ") != decisions || ready == nil || ready.Reason != reason || int(s.Status.Selected) != len(got) || s.Status.ObservedGeneration != s.Generation {
		b.t.Fatalf("the decisions are %q, and the status %+v; want %q and the reason %s", got, s.Status, decisions, reason)
	}
	return s
}

// placed returns what PlacementDecisions have, by name.
func (b *bench) placed() map[string]string {
	b.t.Helper()
	list, err := b.host.Resource(PlacementDecisions).Namespace("team").List(b.t.Context(), metav1.ListOptions{})
	b.must(err)
	out := map[string]string{}
	for i := range list.Items {
		slice, err := decode(&list.Items[i])
		b.must(err)
		var names []string
		for _, d := range slice.Decisions {
			names = append(names, d.ClusterProfileRef.Name)
		}
		out[slice.Name] = slice.Labels[inventory.DecisionIndexLabel] + ":" + strings.Join(names, " ")
	}
	return out
}

func (b *bench) wantPlaced(want map[string]string) {
	b.t.Helper()
	if got := b.placed(); !maps.Equal(got, want) {
		b.t.Errorf("the PlacementDecisions are %q, want %q", got, want)
	}
}

// writes returns the requests that change something, and forgets them.
func (b *bench) writes() (out []string) {
	for _, action := range b.host.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			out = append(out, action.GetVerb()+" "+action.GetResource().Resource+strings.TrimSuffix("/"+action.GetSubresource(), "/"))
		}
	}
	b.host.ClearActions()
	return out
}

// fail has requests answered with an error, until it is nil.
func (b *bench) fail(verb, resource string, answer func() error) {
	b.host.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		err := answer()
		return err != nil, nil, err
	})
}

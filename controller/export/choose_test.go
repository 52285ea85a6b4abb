package export

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/internal/contract"
)

// chooser is a bench of cluster Secrets of those clusters that the ClusterSelection "gold" chooses,
// in a namespace that may see none with the label team=other.
type chooser struct {
	*bench
	selections cache.Indexer
}

func newChooser(t *testing.T) *chooser {
	t.Helper()
	c := &chooser{bench: newDocuments(t), selections: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)}
	c.Selection, c.Limit = "gold", func(cluster *v1beta1.Cluster) bool { return cluster.Labels["team"] != "other" }
	c.choosing = stored{store: c.selections}
	return c
}

// decide has the selection choose clusters, as it is changed then.
func (c *chooser) decide(names []string, change ...func(*operatorv1alpha1.ClusterSelection)) {
	c.t.Helper()
	is := &operatorv1alpha1.ClusterSelection{
		ObjectMeta: metav1.ObjectMeta{Name: "gold", Namespace: "a", Generation: 3},
		Spec:       operatorv1alpha1.ClusterSelectionSpec{RegistryRef: operatorv1alpha1.RegistryReference{Name: "hub", Namespace: "registries"}},
		Status:     operatorv1alpha1.ClusterSelectionStatus{ObservedGeneration: 3, Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: 3}}},
	}
	for _, name := range names {
		is.Status.Decisions = append(is.Status.Decisions, operatorv1alpha1.ClusterDecision{ClusterName: name, Reason: operatorv1alpha1.DecisionMatching})
	}
	for _, f := range change {
		f(is)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(is)
	if err != nil {
		c.t.Fatal(err)
	}
	c.store(&unstructured.Unstructured{Object: content})
}

// store has the host cluster have the selection, or not.
func (c *chooser) store(is *unstructured.Unstructured) {
	_ = c.selections.Replace(nil, "")
	if is != nil {
		_ = c.selections.Add(is)
	}
	c.choose()
	c.settle()
}

// published are the names of the Secrets that there are.
func (c *chooser) published() string {
	var out []string
	for _, key := range c.host.store.ListKeys() {
		out = append(out, strings.TrimPrefix(key, "a/cluster-"))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (c *chooser) expectPublished(reason, want string) {
	c.t.Helper()
	if got := c.published(); got != want {
		c.t.Errorf("%s: %q are published, want %q", reason, got, want)
	}
}

func hidden(c *v1beta1.Cluster) { c.Labels["team"] = "other" }

// TestChosen expects objects of those clusters that a ClusterSelection has chosen, and of no others,
// while it chooses others, one at a time.
func TestChosen(t *testing.T) {
	c := newChooser(t)
	c.put(member("east"), member("west"), member("north"))
	c.pass(time.Minute)
	expectWrites(t, c.bench, "before it is there")
	c.decide([]string{"east"})
	expectWrites(t, c.bench, "the first", "create cluster-east", "apply main cluster-east")
	expectState(t, c.bench, "the first", contract.FunctionRunning, "")
	c.decide([]string{"west"})
	expectWrites(t, c.bench, "the next", "create cluster-west", "apply main cluster-west")
	c.pass(time.Minute)
	expectWrites(t, c.bench, "the first one goes", "delete cluster-east")
	c.decide([]string{"west", "east", "west", "gone"})
	c.pass(10 * time.Minute)
	c.expectPublished("several", "east west")
	c.put(member("gone"))
	c.pass(time.Minute)
	c.expectPublished("one that was chosen before it was seen", "east gone west")
	expectState(t, c.bench, "at the end", contract.FunctionRunning, "")
}

// TestNotKnownWhatIsChosen expects that nothing new is published and nothing is taken back while a
// ClusterSelection does not say what is chosen, whatever its decisions are, and that the export says
// what it waits for. What is published follows its entries meanwhile, unless no one acts on the
// selections of the namespace: no one knows then what it may see.
func TestNotKnownWhatIsChosen(t *testing.T) {
	now := metav1.Now()
	for reason, test := range map[string]struct {
		change func(*chooser)
		says   string
	}{
		"absent": {func(c *chooser) { c.store(nil) }, `"gold" of namespace "a" does not exist: no new cluster Secrets of Argo CD there, and none is taken back. Create it`},
		"terminating": {func(c *chooser) {
			c.decide([]string{"center"}, func(is *operatorv1alpha1.ClusterSelection) { is.DeletionTimestamp = &now })
		}, "does not exist"},
		"not Ready": {func(c *chooser) {
			c.decide([]string{"center"}, func(is *operatorv1alpha1.ClusterSelection) { is.Status.Conditions[0].Status = metav1.ConditionFalse })
		}, "is not Ready: no new"},
		"no condition": {func(c *chooser) {
			c.decide([]string{"center"}, func(is *operatorv1alpha1.ClusterSelection) { is.Status.Conditions = nil })
		}, "has no decisions for its present spec"},
		"a status of before": {func(c *chooser) {
			c.decide([]string{"center"}, func(is *operatorv1alpha1.ClusterSelection) { is.Status.ObservedGeneration = 2 })
		}, "has no decisions for its present spec"},
		"a condition of before": {func(c *chooser) {
			c.decide([]string{"center"}, func(is *operatorv1alpha1.ClusterSelection) { is.Status.Conditions[0].ObservedGeneration = 2 })
		}, "has no decisions for its present spec"},
		"of another registry": {func(c *chooser) {
			c.decide([]string{"center"}, func(is *operatorv1alpha1.ClusterSelection) { is.Spec.RegistryRef.Namespace = "elsewhere" })
		}, `is of another registry: no new`},
		"of another kind": {func(c *chooser) {
			is := &unstructured.Unstructured{Object: map[string]any{"spec": "x"}}
			is.SetName("gold")
			is.SetNamespace("a")
			c.store(is)
		}, "is not valid"},
		"not acted on": {func(c *chooser) {
			c.Limit, c.choosing = nil, nil
			c.choose()
			c.settle()
		}, "is not acted on: no new cluster Secrets of Argo CD there, and none is taken back. Give the namespace an entry with a valid selector"},
	} {
		c := newChooser(t)
		all := []string{"east", "west", "north", "south", "lake"}
		for _, name := range append(all, "center") {
			c.put(member(name))
		}
		c.decide(all)
		c.pass(time.Minute)
		c.expectPublished(reason+", before", "east lake north south west")
		c.writesOf()
		test.change(c)
		c.put(member("new"))
		c.pass(10 * time.Minute)
		expectWrites(t, c.bench, reason)
		expectState(t, c.bench, reason, contract.FunctionRunning, test.says)
		if said := c.judge().message; len(said) > 300 {
			t.Errorf("%s: of %d bytes, people see no more than the first of: %s", reason, len(said), said)
		}
		c.put(member("east", func(is *v1beta1.Cluster) { is.Spec.Endpoints[0].URL, is.Generation = "https://moved.example.com", 2 }))
		c.pass(time.Minute)
		if reason == "not acted on" {
			expectWrites(t, c.bench, reason+": an entry changes")
		} else {
			expectWrites(t, c.bench, reason+": an entry changes", "apply main cluster-east")
		}
		c.drop("lake")
		c.pass(time.Minute)
		expectWrites(t, c.bench, reason+": a cluster is gone", "delete cluster-lake")
		c.host.remove("cluster-south") // which a person decides
		c.pass(10 * time.Minute)
		expectWrites(t, c.bench, reason+": a Secret is deleted")

		c.Limit, c.choosing = func(*v1beta1.Cluster) bool { return true }, stored{store: c.selections}
		c.decide([]string{"east", "west", "center"})
		c.pass(time.Minute)
		c.expectPublished(reason+", afterwards", "center east west")
		expectState(t, c.bench, reason+", afterwards", contract.FunctionRunning, "")
	}
}

// TestNothingIsChosen expects that a ClusterSelection that chooses nothing any more, or other clusters
// at whose endpoints no one answers, takes no fleet of objects with it.
func TestNothingIsChosen(t *testing.T) {
	for reason, chosen := range map[string][]string{"nothing": nil, "clusters that are never reached": {"center"}, "clusters that are not there": {"gone"}} {
		c := newChooser(t)
		c.answers["https://center.example.com:6443"] = silent
		all := []string{"east", "west", "north"}
		c.put(member("east"), member("west"), member("north"), member("center"))
		c.decide(all)
		c.pass(time.Minute)
		c.writesOf()
		c.decide(chosen)
		c.pass(10 * time.Minute)
		expectWrites(t, c.bench, reason)
		expectState(t, c.bench, reason, contract.FunctionRunning, "kubectl delete secrets --namespace=a cluster-east cluster-north cluster-west")
		c.decide(all)
		c.pass(time.Minute)
		expectWrites(t, c.bench, reason+": they are chosen again")
		expectState(t, c.bench, reason+": they are chosen again", contract.FunctionRunning, "")
	}
}

// TestForgedDecisions expects that decisions that someone has written, of clusters that the namespace
// may not see, or that no one may be led to, publish nothing of these, and have no one connect to
// them. Nor does what is there already of such a cluster stay while it is not known what is chosen.
func TestForgedDecisions(t *testing.T) {
	c := newChooser(t)
	c.put(member("east"), member("west"), member("secret", hidden), member("closed", without), member("mistaken", func(is *v1beta1.Cluster) {
		is.Status.Conditions = append(is.Status.Conditions, metav1.Condition{Type: "IdentityVerified", Status: metav1.ConditionFalse})
	}))
	forged := []string{"east", "secret", "closed", "mistaken", "../east", ""}
	c.decide(forged)
	c.pass(time.Minute)
	c.expectPublished("forged", "east")
	if slices.Contains(c.asked, "https://secret.example.com:6443") {
		t.Errorf("asked were %q", c.asked)
	}
	// It is taken out of what the namespace may see.
	c.put(member("east", hidden), member("west"))
	c.pass(time.Minute)
	c.expectPublished("hidden later", "")

	c.decide([]string{"west", "east"})
	c.put(member("east"))
	c.pass(time.Minute)
	c.expectPublished("shown again", "east west")
	c.store(nil)
	c.put(member("east", hidden))
	c.pass(time.Minute)
	c.expectPublished("hidden while nothing is chosen", "west")
}

// TestOnlyChosenAreAsked expects that no one connects to clusters that are not chosen.
func TestOnlyChosenAreAsked(t *testing.T) {
	c := newChooser(t)
	expect := func(reason string, names ...string) {
		t.Helper()
		c.pass(2 * time.Minute)
		var got []string
		for _, url := range c.asked {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(url, "https://"), ".example.com:6443"))
		}
		if slices.Sort(got); !slices.Equal(got, names) {
			t.Errorf("%s: asked were %q, want %q", reason, got, names)
		}
		c.asked = nil
	}
	c.put(member("east"), member("west"), member("north"))
	expect("it is not known yet")
	c.decide([]string{"east"})
	expect("the first", "east")
	c.decide([]string{"west"})
	expect("the next", "west")
	c.decide([]string{"west", "north"})
	c.store(nil)
	c.asked = nil // it was, before it was not chosen any more
	generation := func(c *v1beta1.Cluster) { c.Generation = 2 }
	c.put(member("east", generation), member("west", generation), member("north", generation), member("new"))
	c.host.shell("east")
	expect("it is no longer known: of those that have an object", "north", "west")
}

// TestAskedAtStart expects a controller that starts while it is not known what is chosen to have those
// asked that have an object, once it knows which these are, and no others before or afterwards.
func TestAskedAtStart(t *testing.T) {
	c := newChooser(t)
	c.put(member("east"), member("west"))
	c.decide([]string{"east"})
	c.store(nil)
	c.restart()
	c.asked = nil
	p := c.publishers[0]
	p.session = nil
	c.put(member("east"), member("west"))
	if len(c.asked) > 0 {
		t.Errorf("before it knows the objects, asked were %q", c.asked)
	}
	p.session = c.session
	c.queueAll()
	c.pass(time.Minute)
	if want := []string{"https://east.example.com:6443"}; !slices.Equal(c.asked, want) {
		t.Errorf("asked were %q, want %q", c.asked, want)
	}
}

// shell makes an empty Secret with the labels of the registry, as anyone who may write Secrets there.
func (h *host) shell(cluster string) {
	document := format.Document{Source: source, Format: h.bench.kind.Name}
	shell := &unstructured.Unstructured{Object: map[string]any{}}
	shell.SetGroupVersionKind(h.bench.kind.GroupVersionKind)
	shell.SetName(h.bench.kind.Prefix + cluster)
	shell.SetNamespace("a")
	shell.SetLabels(document.Mark())
	shell.SetUID("shell-" + types.UID(cluster))
	h.save(shell)
	h.bench.settle()
}

// TestForgedObjects expects that an empty object which someone has made with the labels of the
// registry is not filled while it is not known what is chosen: not of a cluster that the namespace may
// see, and of no cluster where no one acts on its selections.
func TestForgedObjects(t *testing.T) {
	for reason, limit := range map[string]func(*v1beta1.Cluster) bool{"not acted on": nil, "absent": func(*v1beta1.Cluster) bool { return true }} {
		c := newChooser(t)
		c.Limit = limit
		if limit == nil {
			c.choosing = nil
		}
		c.choose()
		c.put(member("secret", hidden), member("gone"), member("mistaken"))
		c.host.shell("secret")
		c.host.shell("gone")
		c.host.shell("mistaken")
		c.pass(10 * time.Minute)
		c.put(member("secret", hidden, func(is *v1beta1.Cluster) { is.Generation = 2 }))
		c.pass(10 * time.Minute)
		expectWrites(t, c.bench, reason)
		if len(c.asked) > 0 {
			t.Errorf("%s: asked were %q", reason, c.asked)
		}
		c.drop("gone")
		c.put(member("mistaken", func(is *v1beta1.Cluster) {
			is.Status.Conditions = append(is.Status.Conditions, metav1.Condition{Type: "IdentityVerified", Status: metav1.ConditionFalse})
		}))
		c.pass(time.Minute)
		c.expectPublished(reason+": what leads nowhere any more goes", "secret")
	}
}

// TestChoiceOfOneServer expects that of two clusters with one server, the object of the chosen one
// stays when it is no longer known which that is, though the other's is older and not gone yet.
func TestChoiceOfOneServer(t *testing.T) {
	c := newChooser(t)
	same := func(is *v1beta1.Cluster) { is.Spec.Endpoints[0].URL = "https://same.example.com:6443" }
	c.put(member("east", same), member("west", same))
	c.decide([]string{"east"})
	c.pass(time.Minute)
	c.decide([]string{"west"})
	c.expectPublished("while the first one is about to go", "east west")
	c.store(nil)
	c.pass(10 * time.Minute)
	c.expectPublished("it is not known which", "east west")
	c.decide([]string{"west"})
	c.pass(time.Minute)
	c.expectPublished("it is known again", "west")
	expectState(t, c.bench, "it is known again", contract.FunctionRunning, "")
}

// TestSelectionIsUnread expects that what was chosen last stays while a ClusterSelection can't be
// read, and that the export says so.
func TestSelectionIsUnread(t *testing.T) {
	c := newChooser(t)
	c.put(member("east"))
	c.decide([]string{"east"})
	c.pass(time.Minute)
	c.unchosen.note(c.Clock.Now(), errors.New("forbidden"))
	expectState(t, c.bench, "it can't be read", contract.FunctionFailing, `ClusterSelection "gold" of namespace "a" can't be listed or watched, so that what it chooses is not followed: forbidden`)
	c.expectPublished("it can't be read", "east")
	c.pass(2 * time.Minute)
	expectState(t, c.bench, "it can", contract.FunctionRunning, "")
}

// TestFailuresOfChosen expects that failures of all that is chosen count as those of an export, though
// there are clusters that are not chosen.
func TestFailuresOfChosen(t *testing.T) {
	c := newChooser(t)
	c.host.fail = func(string) error {
		return apierrors.NewInvalid(c.kind.GroupKind(), "cluster-east", nil)
	}
	c.put(member("east"), member("west"))
	c.decide([]string{"east"})
	c.pass(time.Minute)
	expectState(t, c.bench, "the only one that is chosen is not valid", contract.FunctionFailing, `can't be written: "cluster-east"`)
}

// TestWaitingIsCounted expects the metric by which people hear of an export that is not kept up to
// date to say so of one that waits for its ClusterSelection.
func TestWaitingIsCounted(t *testing.T) {
	c := newChooser(t)
	metrics, err := NewMetrics(prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	c.Metrics = metrics
	ready := func(reason string, want float64) {
		t.Helper()
		if got := testutil.ToFloat64(metrics.ready.WithLabelValues("a", "ArgoCDSecret")); got != want {
			t.Errorf("%s: ready is %v, want %v", reason, got, want)
		}
	}
	c.store(nil)
	ready("there is none", 0)
	c.decide(nil)
	ready("there is one", 1)
}

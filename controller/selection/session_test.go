package selection

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

const gold = "cluster.labels['tier'] == 'gold'"

// TestLife goes through the life of a selection.
func TestLife(t *testing.T) {
	b := newBench(t, Target{})
	b.cluster("east")
	b.cluster("west")
	b.cluster("south", silver)
	b.create("gold", gold)
	s := b.want("gold", "east west", reasonDecided)
	b.wantPlaced(map[string]string{"gold-0": "0:east west"})
	if published := meta.FindStatusCondition(s.Status.Conditions, "Published"); published == nil || published.Status != metav1.ConditionTrue {
		t.Errorf("the conditions are %+v", s.Status.Conditions)
	}
	b.writes()
	b.want("gold", "east west", reasonDecided)
	if again := b.writes(); len(again) > 0 {
		t.Errorf("what has not changed is written: %q", again)
	}

	b.cluster("south")
	b.want("gold", "east south west", reasonDecided)
	b.wantPlaced(map[string]string{"gold-0": "0:east south west"})
	if got, want := b.writes(), []string{"update clusterselections/status", "update placementdecisions"}; !slices.Equal(got, want) {
		t.Errorf("a change writes %q, want %q", got, want)
	}

	b.cluster("east", silver)
	if s := b.want("gold", "east south west", reasonDecided); s.Status.Decisions[0].Reason != operatorv1alpha1.DecisionNotMatching || s.Status.Decisions[0].Since == nil {
		t.Errorf("a cluster that does not match any more is %+v", s.Status.Decisions)
	}
	b.time.Step(301 * time.Second)
	b.want("gold", "south west", reasonDecided)
	b.wantPlaced(map[string]string{"gold-0": "0:south west"})

	b.edit("gold", func(s *operatorv1alpha1.ClusterSelection) { s.Spec.Where = "false" })
	b.want("gold", "", reasonDecided)
	b.wantPlaced(map[string]string{"gold-0": "0:"})
	b.remove("gold")
	b.must(b.look("gold"))
	b.wantPlaced(map[string]string{})
}

// TestRestart continues from the status: a controller that takes over keeps the time.
func TestRestart(t *testing.T) {
	b := newBench(t, Target{})
	b.cluster("east")
	b.create("gold", gold)
	b.want("gold", "east", reasonDecided)
	b.cluster("east", silver)
	b.want("gold", "east", reasonDecided)
	b.time.Step(200 * time.Second)
	b.programs = map[string]*program{}
	b.want("gold", "east", reasonDecided)
	b.time.Step(101 * time.Second)
	b.want("gold", "", reasonDecided)
}

// TestSlices publishes many decisions in slices, and takes back those that are not needed.
func TestSlices(t *testing.T) {
	b := newBench(t, Target{})
	for i := range 205 {
		b.cluster(fmt.Sprintf("c%03d", i))
	}
	b.create("all", "")
	b.must(b.look("all"))
	placed := b.placed()
	for name, want := range map[string][3]string{"all-0": {"0:", "c000", "c099"}, "all-1": {"1:", "c100", "c199"}, "all-2": {"2:", "c200", "c204"}} {
		got := placed[name]
		if !strings.HasPrefix(got, want[0]+want[1]+" ") || !strings.HasSuffix(got, want[2]) {
			t.Errorf("%s is %q", name, got)
		}
	}
	b.edit("all", func(s *operatorv1alpha1.ClusterSelection) { s.Spec.Limit = 2 })
	b.want("all", "c000 c001", reasonDecided)
	b.wantPlaced(map[string]string{"all-0": "0:c000 c001"})
	live, err := b.host.Resource(PlacementDecisions).Namespace("team").Get(t.Context(), "all-0", metav1.GetOptions{})
	b.must(err)
	slice, err := decode(live)
	b.must(err)
	if owner := ownerOf(slice); owner == nil || owner.UID != b.get("all").UID || slice.Labels[inventory.DecisionKeyLabel] != "all" || slice.SchedulerName != contract.SelectionScheduler {
		t.Errorf("it is %+v", slice)
	}
	b.must(b.host.Resource(PlacementDecisions).Namespace("team").Delete(t.Context(), "all-0", metav1.DeleteOptions{}))
	b.must(b.look("all"))
	b.wantPlaced(map[string]string{"all-0": "0:c000 c001"})
}

// TestVisibility selects nothing that the namespace may not see, whatever the expressions, and
// says nothing of it.
func TestVisibility(t *testing.T) {
	selector, err := labels.Parse("tier=gold")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, Target{Selector: selector, ClusterSets: []string{"payments"}})
	b.cluster("a", in("payments"))
	b.cluster("b", in("payments"))
	b.cluster("secret-set", in("batch"))
	b.cluster("secret-tier", in("payments"), silver)
	b.cluster("secret-none")
	b.create("all", "")
	b.want("all", "a b", reasonDecided)
	b.create("asking", "cluster.labels['asked'] == 'x'")
	if s := b.want("asking", "", reasonDecided); strings.Contains(fmt.Sprintf("%+v", s.Status), "secret") || !strings.Contains(fmt.Sprintf("%+v", s.Status), `"a"`) {
		t.Errorf("the status is %+v", s.Status)
	}
	b.cluster("b", in("batch"))
	b.want("all", "a", reasonDecided)
	b.wantPlaced(map[string]string{"all-0": "0:a", "asking-0": "0:"})
	b.edit("all", func(s *operatorv1alpha1.ClusterSelection) { s.Spec.Where = "nonsense" })
	b.cluster("a", in("batch"))
	b.want("all", "", reasonInvalid)
	b.wantPlaced(map[string]string{"all-0": "0:", "asking-0": "0:"})
}

// TestFaults says what is wrong with a selection, and keeps what was selected.
func TestFaults(t *testing.T) {
	says := func(b *bench, name, of, want string) {
		t.Helper()
		if c := meta.FindStatusCondition(b.get(name).Status.Conditions, of); c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, want) {
			t.Errorf("the condition %s is %+v, want %q", of, c, want)
		}
	}
	t.Run("an expression", func(t *testing.T) {
		b := newBench(t, Target{})
		b.cluster("east")
		b.create("gold", gold)
		b.want("gold", "east", reasonDecided)
		b.edit("gold", func(s *operatorv1alpha1.ClusterSelection) { s.Spec.Where = "labels['tier'] == 'gold'" })
		b.want("gold", "east", reasonInvalid)
		says(b, "gold", "Ready", "spec.where is not valid at line 1, column 1")
	})
	t.Run("its cost", func(t *testing.T) {
		b := newBench(t, Target{})
		for i := range 150 {
			b.cluster(fmt.Sprintf("c%03d", i))
		}
		searched := "['" + strings.Repeat("a", 2500) + "'].all(text, [1, 2, 3, 4, 5, 6, 7, 8, 9].all(i, !text.matches('" + strings.Repeat("b", 200) + "')))"
		b.create("dear", searched)
		b.want("dear", "", reasonExpensive)
		says(b, "dear", "Ready", "fewer loops")
		until := b.programs["dear"].until
		b.cluster("another")
		b.want("dear", "", reasonExpensive)
		if b.programs["dear"].until != until {
			t.Error("it is evaluated again at once")
		}
	})
	t.Run("a registry that was emptied", func(t *testing.T) {
		b := newBench(t, Target{})
		for _, name := range []string{"a", "b", "c"} {
			b.cluster(name)
		}
		b.create("gold", gold)
		b.want("gold", "a b c", reasonDecided)
		for _, name := range []string{"a", "b", "c"} {
			b.fleet.drop(name)
		}
		b.want("gold", "a b c", reasonMissing)
		says(b, "gold", "Ready", "no longer has 3 of the 3 selected clusters")
		b.edit("gold", func(s *operatorv1alpha1.ClusterSelection) { s.Spec.StabilizationSeconds = ptr.To[int32](1) })
		b.want("gold", "", reasonDecided)
	})
	t.Run("too many", func(t *testing.T) {
		b := newBench(t, Target{})
		b.cluster("east")
		for i := range most + 1 {
			b.create(fmt.Sprintf("s%03d", i), "")
		}
		b.want("s099", "east", reasonDecided)
		b.want("s100", "", reasonTooMany)
		b.remove("s000")
		b.want("s100", "east", reasonDecided)
	})
	t.Run("a registry that is not read", func(t *testing.T) {
		b := newBench(t, Target{})
		b.cluster("east")
		b.create("gold", gold)
		b.want("gold", "east", reasonDecided)
		b.trouble = errors.New("no answer")
		b.fleet.drop("east")
		b.want("gold", "east", reasonDecided)
	})
	t.Run("another registry", func(t *testing.T) {
		b := newBench(t, Target{})
		b.create("gold", gold, func(s *operatorv1alpha1.ClusterSelection) { s.Spec.RegistryRef.Name = "other" })
		b.must(b.look("gold"))
		if s := b.get("gold"); len(s.Status.Conditions) > 0 {
			t.Errorf("its status is %+v", s.Status)
		}
	})
	t.Run("no PlacementDecisions", func(t *testing.T) {
		b := newBench(t, Target{})
		b.cluster("east")
		b.served = false
		b.published.note(b.time.Now(), "", errors.New("the server could not find the requested resource"))
		b.create("gold", gold)
		b.want("gold", "east", reasonDecided)
		says(b, "gold", "Published", "Install the CRD placementdecisions.multicluster.x-k8s.io")
		b.wantPlaced(map[string]string{})
		b.served, b.version = true, "1"
		b.want("gold", "east", reasonDecided)
		b.wantPlaced(map[string]string{"gold-0": "0:east"})
	})
	t.Run("a name that is taken", func(t *testing.T) {
		b := newBench(t, Target{})
		b.cluster("east")
		foreign := &inventory.PlacementDecision{TypeMeta: metav1.TypeMeta{APIVersion: inventory.GroupVersion.String(), Kind: "PlacementDecision"}, ObjectMeta: metav1.ObjectMeta{Name: "gold-0", Namespace: "team"}, Decisions: []inventory.ClusterDecision{}}
		_, err := b.host.Resource(PlacementDecisions).Namespace("team").Create(t.Context(), b.object(foreign), metav1.CreateOptions{})
		b.must(err)
		b.create("gold", gold)
		b.want("gold", "east", reasonDecided)
		says(b, "gold", "Published", `PlacementDecision "gold-0" is not of this ClusterSelection`)
		b.wantPlaced(map[string]string{"gold-0": ":"})
	})
	t.Run("a write that fails", func(t *testing.T) {
		b := newBench(t, Target{})
		b.cluster("east")
		b.create("gold", gold)
		fault := errors.New("refused by a webhook")
		b.fail("create", "placementdecisions", func() error { return fault })
		for range persistent {
			if err := b.look("gold"); err == nil || !strings.Contains(err.Error(), fault.Error()) {
				t.Errorf("the error is %v", err)
			}
		}
		if v := b.judge(); v.state != contract.FunctionFailing || !strings.Contains(v.message, `ClusterSelection "gold" can't be written`) {
			t.Errorf("the function is %+v", v)
		}
		fault = nil
		b.want("gold", "east", reasonDecided)
		if v := b.judge(); v.state != contract.FunctionRunning {
			t.Errorf("the function is %+v", v)
		}
	})
}

// TestAgain makes a selection of the name of one that is gone: no decision of that is left, and
// nothing goes on the word of an informer alone.
func TestAgain(t *testing.T) {
	b := newBench(t, Target{})
	b.cluster("east")
	b.create("gold", gold)
	b.want("gold", "east", reasonDecided)
	b.want("gold", "east", reasonDecided) // with the informer of what is published
	_ = b.selections.GetStore().Replace(nil, "")
	b.stale.Store(true)
	b.must(b.reconcile(t.Context(), "gold"))
	b.wantPlaced(map[string]string{"gold-0": "0:east"})
	b.remove("gold")
	b.create("gold", "false")
	if err := b.look("gold"); err == nil {
		t.Error("the PlacementDecision of the one before is taken over")
	}
	b.want("gold", "", reasonDecided)
	b.wantPlaced(map[string]string{"gold-0": "0:"})
}

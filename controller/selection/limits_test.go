package selection

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// byName has a selection keep the name of each cluster.
func byName(s *operatorv1alpha1.ClusterSelection) {
	s.Spec.OrderBy = []operatorv1alpha1.ClusterOrder{{Expression: "cluster.name"}}
}

// TestMemory refuses what takes too much memory of all selections together, and gives back what
// selections that are gone took.
func TestMemory(t *testing.T) {
	b := newBench(t, Target{})
	b.cluster("east")
	b.create("first", "", byName)
	b.want("first", "east", reasonDecided)
	taken := b.fleet.kept.Load()
	if taken < int64(len("east")) {
		t.Errorf("%d bytes are kept", taken)
	}
	others := &program{}
	b.fleet.keep(others, memory)
	b.create("second", "", byName)
	b.want("second", "", reasonExpensive)
	if now := b.fleet.kept.Load(); now != taken+memory {
		t.Errorf("%d bytes are kept, want %d", now, taken+memory)
	}
	b.fleet.keep(others, 0)
	b.time.Step(pause)
	b.want("second", "east", reasonDecided)
	b.edit("second", func(s *operatorv1alpha1.ClusterSelection) { s.Spec.OrderBy = nil })
	b.want("second", "east", reasonDecided)
	b.remove("first")
	b.must(b.look("first"))
	if now := b.fleet.kept.Load(); now != 0 {
		t.Errorf("%d bytes are kept for selections that are gone", now)
	}
}

// TestTooMany says once of a selection that it is one too many, and looks no further; the next
// one is let in when another one goes.
func TestTooMany(t *testing.T) {
	b := newBench(t, Target{})
	b.cluster("east")
	for i := range most + 2 {
		b.create(fmt.Sprintf("s%03d", i), "")
	}
	b.want("s100", "", reasonTooMany)
	b.writes()
	b.must(b.look("s100"))
	if wrote := b.writes(); len(wrote) > 0 || len(b.programs) > 0 {
		t.Errorf("again, it wrote %q, with %d programs", wrote, len(b.programs))
	}
	queued := b.queue.Len()
	b.must(b.look("s000"))
	if now := b.queue.Len(); now != queued {
		t.Errorf("a change of another one has %d looked at", now-queued)
	}
	b.remove("s000")
	b.must(b.look("s001"))
	if name, _ := b.queue.Get(); name != "s100" {
		t.Errorf("when one goes, %q is looked at", name)
	}
	b.want("s100", "east", reasonDecided)
}

// TestOthersStay keeps what others have set of a PlacementDecision when its decisions change.
func TestOthersStay(t *testing.T) {
	b := newBench(t, Target{})
	b.cluster("east")
	b.create("all", "")
	b.must(b.look("all"))
	set := func(object *unstructured.Unstructured) {
		labels := object.GetLabels()
		labels["example.com/team"] = "a"
		object.SetLabels(labels)
		object.SetAnnotations(map[string]string{"example.com/note": "b"})
		object.SetFinalizers([]string{"example.com/hold"})
	}
	placed := b.host.Resource(PlacementDecisions).Namespace("team")
	live, err := placed.Get(t.Context(), "all-0", metav1.GetOptions{})
	b.must(err)
	set(live)
	_, err = placed.Update(t.Context(), live, metav1.UpdateOptions{})
	b.must(err)
	b.cluster("west")
	b.must(b.look("all"))
	b.wantPlaced(map[string]string{"all-0": "0:east west"})
	live, err = placed.Get(t.Context(), "all-0", metav1.GetOptions{})
	b.must(err)
	if live.GetLabels()["example.com/team"] != "a" || live.GetAnnotations()["example.com/note"] != "b" || len(live.GetFinalizers()) != 1 {
		t.Errorf("it has %v, %v and %v", live.GetLabels(), live.GetAnnotations(), live.GetFinalizers())
	}
}

// TestTrimmed keeps of a selection what is read.
func TestTrimmed(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetName("all")
	object.SetAnnotations(map[string]string{"a": "b"})
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "a"}})
	if _, err := trimSelection(object); err != nil || len(object.GetAnnotations()) > 0 || len(object.GetManagedFields()) > 0 || object.GetName() != "all" {
		t.Errorf("it is %v, %v", object, err)
	}
}

// TestTurns evaluates expressions in several turns. An edit takes effect at once when they are
// done, and nothing is said of it before.
func TestTurns(t *testing.T) {
	b := newBench(t, Target{})
	b.cluster("east")
	b.cluster("west", silver)
	b.create("golden", "cluster.labels['tier'] == 'gold'")
	b.want("golden", "east", reasonDecided)
	whole := b.fleet.turn
	b.fleet.turn = 0
	b.edit("golden", func(s *operatorv1alpha1.ClusterSelection) { s.Spec.Where = "cluster.labels['tier'] == 'silver'" })
	for range 2 {
		b.must(b.look("golden"))
		s := b.get("golden")
		ready := meta.FindStatusCondition(s.Status.Conditions, operatorv1alpha1.SelectionConditionReady)
		if ready.Status != metav1.ConditionFalse || ready.Reason != reasonBusy || s.Status.ObservedGeneration == s.Generation || len(s.Status.Decisions) != 1 || s.Status.Decisions[0].ClusterName != "east" {
			t.Errorf("its status is %+v", s.Status)
		}
	}
	b.fleet.turn = whole
	b.want("golden", "west", reasonDecided)
	b.fleet.turn = 0
	b.cluster("north", silver)
	b.want("golden", "west", reasonDecided) // of the spec, the same is said as before
}

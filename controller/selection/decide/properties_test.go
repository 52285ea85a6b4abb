package decide

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestProperties changes a fleet at random, and checks each decision by what must hold of all.
func TestProperties(t *testing.T) {
	const window = 60
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			limit := 1 + random.IntN(6)
			f := newFleet(t, limit, window, "a b c d e f g h")
			lastWanted := map[string]time.Time{}
			for range 60 {
				name := string(rune('a' + random.IntN(8)))
				change(f, random, name)
				f.now = f.now.Add(time.Duration(random.IntN(40)) * time.Second)
				before := f.is
				added, removed := f.decide()
				check(t, f, before, added, removed, lastWanted)
				for _, d := range f.is {
					if d.Reason == operatorv1alpha1.DecisionMatching {
						lastWanted[d.ClusterName] = f.now
					}
				}
				if t.Failed() {
					t.Fatalf("before: %v; now: %v", before, f.is)
				}
				if again, gone := f.decide(); len(again)+len(gone) > 0 {
					t.Fatalf("deciding again adds %q and removes %q", again, gone)
				}
			}
		})
	}
}

// change does something to a cluster that is in the registry, or brings it back.
func change(f *fleet, random *rand.Rand, name string) {
	if f.clusters[name] == nil {
		f.clusters[name] = &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return
	}
	switch random.IntN(12) {
	case 0:
		delete(f.clusters, name)
	case 1:
		f.hidden[name] = !f.hidden[name]
	case 2:
		f.taint(name, []v1beta1.TaintEffect{v1beta1.TaintNoSchedule, v1beta1.TaintNoExecute, v1beta1.TaintPreferNoSchedule}[random.IntN(3)])
	case 3:
		f.clusters[name].Spec.Taints = nil
	case 4, 5, 6:
		f.out(name, random.IntN(2) == 0)
	default:
		f.rank(name, fmt.Sprint(random.IntN(9)))
	}
}

// check checks one step: who is there, who has come and who has gone.
func check(t *testing.T, f *fleet, before []operatorv1alpha1.ClusterDecision, added, removed []string, lastWanted map[string]time.Time) {
	t.Helper()
	if len(f.is) > int(f.spec.Limit) {
		t.Errorf("there are %d decisions, more than %d", len(f.is), f.spec.Limit)
	}
	fits := func(name string) bool {
		c := f.clusters[name]
		return c != nil && !f.hidden[name] && c.Labels["out"] == "" && repels(c.Spec.Taints, nil) < noNew
	}
	for _, name := range namesOf(f.is) {
		if f.hidden[name] && f.clusters[name] != nil {
			t.Errorf("%s can't be seen, and is selected", name)
		}
	}
	for _, name := range added {
		if !fits(name) {
			t.Errorf("%s has come, and does not match", name)
		}
	}
	for _, name := range removed {
		c := f.clusters[name]
		if c == nil || f.hidden[name] || repels(c.Spec.Taints, nil) == evict {
			continue
		}
		if since := f.now.Sub(lastWanted[name]); since < time.Duration(*f.spec.StabilizationSeconds)*time.Second {
			t.Errorf("%s was one of those to select %v ago, and is gone", name, since)
		}
	}
	if len(f.is) < int(f.spec.Limit) {
		for name := range f.clusters {
			if fits(name) && !slices.Contains(namesOf(f.is), name) {
				t.Errorf("there is a place, and %s has none", name)
			}
		}
	}
	if len(added) == 0 && len(removed) == 0 && !slices.Equal(namesOf(before), namesOf(f.is)) && f.now.Sub(noon) < time.Duration(*f.spec.StabilizationSeconds)*time.Second {
		t.Error("the order has changed too early")
	}
}

// TestNoise has clusters fluctuate for less than the time: nothing moves.
func TestNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	f := newFleet(t, 3, 60, "a b c d e f")
	for range 300 {
		name := string(rune('a' + random.IntN(6)))
		if random.IntN(2) == 0 && name < "d" {
			f.out(name, true)
		} else {
			f.rank(name, fmt.Sprint(random.IntN(9)))
		}
		f.now = f.now.Add(29 * time.Second)
		if added, removed := f.decide(); len(added)+len(removed) > 0 {
			t.Fatalf("%q came and %q went", added, removed)
		}
		for _, quiet := range []string{"a", "b", "c", "d", "e", "f"} {
			f.out(quiet, false)
			f.rank(quiet, "5")
		}
		f.now = f.now.Add(29 * time.Second)
		f.decide()
	}
	f.want("a b c")
}

package clusterset

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// in returns a cluster in a set that runs a version, or none.
func in(name, set, version string, available metav1.ConditionStatus) *clusterregistry.Cluster {
	c := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterregistry.ClusterSpec{ClusterSet: set}}
	if version != "" {
		c.Status = &clusterregistry.ClusterStatus{Version: clusterregistry.ClusterVersion{Kubernetes: version}, Conditions: []metav1.Condition{{Type: "Available", Status: available}}}
	}
	return c
}

// TestTally has clusters come, change, move and go at random, also while a watch is begun
// anew, and compares each set with a count from nothing.
func TestTally(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	sets, versions := []string{"", "blue", "green", "red"}, []string{"", "v1.36.3", "v1.37.1"}
	statuses := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	tally, stored := newTally(), map[string]*clusterregistry.Cluster{}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 5000 {
		c := in(fmt.Sprintf("c%d", random.Intn(20)), sets[random.Intn(len(sets))], versions[random.Intn(len(versions))], statuses[random.Intn(len(statuses))])
		switch random.Intn(10) {
		case 0:
			if old := stored[c.Name]; old != nil {
				check(tally.Delete(old))
				delete(stored, c.Name)
			}
		case 1: // a new list, which lacks some and has others changed
			delete(stored, c.Name)
			var all []any
			for _, cluster := range stored {
				all = append(all, cluster)
			}
			check(tally.Replace(all, "1"))
		case 2:
			check(tally.Add(c))
			stored[c.Name] = c
		default:
			check(tally.Update(c))
			stored[c.Name] = c
		}
		fresh := newTally()
		for _, cluster := range stored {
			check(fresh.Add(cluster))
		}
		for _, set := range sets[1:] {
			if got, want := tally.status(set), fresh.status(set); !apiequality.Semantic.DeepEqual(got, want) {
				t.Fatalf("%s: %+v, want %+v", set, got, want)
			}
		}
	}
	if err := tally.Add(&clusterregistry.ClusterSet{}); err == nil {
		t.Error("a ClusterSet was counted as a Cluster")
	}
}

// TestChanged expects that just the sets are written that have changed, and those that
// could not be written.
func TestChanged(t *testing.T) {
	tally := newTally()
	wake := func() bool {
		select {
		case <-tally.wake:
			return true
		default:
			return false
		}
	}
	for _, step := range []struct {
		reason string
		do     func()
		want   []string
	}{
		{"nothing", func() {}, nil},
		{"a cluster in no set", func() { _ = tally.Add(in("a", "", "v1", metav1.ConditionTrue)) }, nil},
		{"a cluster in a set", func() { _ = tally.Add(in("b", "blue", "v1", metav1.ConditionTrue)) }, []string{"blue"}},
		{"the same again", func() { _ = tally.Update(in("b", "blue", "v1", metav1.ConditionTrue)) }, nil},
		{"what does not count", func() {
			c := in("b", "blue", "v1", metav1.ConditionTrue)
			c.Spec.DisplayName, c.ResourceVersion = "B", "7"
			_ = tally.Update(c)
		}, nil},
		{"it is unavailable", func() { _ = tally.Update(in("b", "blue", "v1", metav1.ConditionFalse)) }, []string{"blue"}},
		{"it moves", func() { _ = tally.Update(in("b", "green", "v1", metav1.ConditionFalse)) }, []string{"blue", "green"}},
		{"a list without it", func() { _ = tally.Replace(nil, "1") }, []string{"green"}},
		{"a write failed", func() { tally.again("green") }, []string{"green"}},
	} {
		step.do()
		if got := wake(); got != (step.want != nil) {
			t.Errorf("%s: woken is %t", step.reason, got)
		}
		if got := tally.take(); !slices.Equal(got, step.want) {
			t.Errorf("%s: changed %q, want %q", step.reason, got, step.want)
		}
	}
}

// TestVersionsAreBounded keeps a set small whose clusters report whatever they like.
func TestVersionsAreBounded(t *testing.T) {
	tally := newTally()
	for i := range 100 {
		_ = tally.Add(in(fmt.Sprint(i), "blue", fmt.Sprintf("v%d", i/2), metav1.ConditionTrue))
	}
	if got := tally.status("blue"); len(got.Versions) != maxVersions || got.Clusters != 100 || got.Versions[0].Clusters != 2 {
		t.Errorf("%d versions, %d clusters, %v first", len(got.Versions), got.Clusters, got.Versions[0])
	}
}

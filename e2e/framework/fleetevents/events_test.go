package fleetevents

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

func said(lines ...string) []Event { return parse(lines) }

func cluster(name, uid, version string) v1beta1.Cluster {
	return v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

// TestReplay has what a program may say, and what it may not.
func TestReplay(t *testing.T) {
	for reason, test := range map[string]struct {
		events  []Event
		problem string
	}{
		"a life and a second one":  {said("added east u1 1", "changed east u1 2", "removed east u1 2", "added east u2 4"), ""},
		"messages of client-go":    {said("W1126 02:26:22 reflector.go:342 watch ended with: too old", "added east u1 1"), ""},
		"added twice":              {said("added east u1 1", "added east u1 1"), "it is there already"},
		"another one under a name": {said("added east u1 1", "changed east u2 2"), "what is there is added east u1 1"},
		"a version twice":          {said("added east u1 1", "changed east u1 2", "changed east u1 2"), "that version was told before"},
		"an old version":           {said("added east u1 1", "changed east u1 2", "changed east u1 1"), "that version was told before"},
		"removed twice":            {said("added east u1 1", "removed east u1 1", "removed east u1 1"), "it is not there"},
		"changed, never added":     {said("changed east u1 1"), "it is not there"},
	} {
		_, problems := replay(nil, test.events)
		if text := strings.Join(problems, "\n"); (text == "") != (test.problem == "") || !strings.Contains(text, test.problem) {
			t.Errorf("%s: %q", reason, text)
		}
	}
}

// TestCompare has states that are not what a registry lists.
func TestCompare(t *testing.T) {
	list := []v1beta1.Cluster{cluster("east", "u1", "2"), cluster("west", "u2", "3")}
	for reason, test := range map[string]struct {
		events []Event
		good   bool
	}{
		"all":             {said("added east u1 1", "changed east u1 2", "added west u2 3"), true},
		"one is missed":   {said("added east u1 2"), false},
		"the last is not": {said("added east u1 1", "added west u2 3"), false},
		"another UID":     {said("added east u3 2", "added west u2 3"), false},
		"one too many":    {said("added east u1 2", "added west u2 3", "added south u4 4"), false},
	} {
		state, problems := replay(nil, test.events)
		if err := compare(state, list); (err == nil) != test.good || len(problems) > 0 {
			t.Errorf("%s: %v, %v", reason, err, problems)
		}
	}
}

// TestMissed has events that are less or more than what was written.
func TestMissed(t *testing.T) {
	lives := []Life{{Name: "east", UID: "u1", Versions: []string{"1", "2", "3"}, Deleted: true}, {Name: "east", UID: "u2", Versions: []string{"5"}}}
	for reason, test := range map[string]struct {
		events   []Event
		problems int
		merged   int
	}{
		"all":                   {said("added east u1 1", "changed east u1 2", "changed east u1 3", "removed east u1 3", "added east u2 5"), 0, 0},
		"a change is left out":  {said("added east u1 1", "changed east u1 3", "removed east u1 3", "added east u2 5"), 0, 1},
		"a removal is missed":   {said("added east u1 1", "changed east u1 2", "changed east u1 3", "added east u2 5"), 1, 0},
		"a creation is missed":  {said("added east u1 1", "changed east u1 2", "changed east u1 3", "removed east u1 3"), 1, 1},
		"a creation is doubled": {said("added east u1 1", "changed east u1 2", "changed east u1 3", "removed east u1 3", "added east u2 5", "added east u2 5"), 1, 0},
		"one that was kept":     {said("added east u1 1", "changed east u1 2", "changed east u1 3", "removed east u1 3", "added east u2 5", "removed east u2 5"), 1, 0},
	} {
		if problems, merged := missed(test.events, lives); len(problems) != test.problems || merged != test.merged {
			t.Errorf("%s: %q, %d left out", reason, problems, merged)
		}
	}
}

// TestDifference has a restore with each kind of event.
func TestDifference(t *testing.T) {
	got := difference(
		[]v1beta1.Cluster{cluster("later", "u1", "9"), cluster("same", "u2", "3"), cluster("changed", "u3", "8"), cluster("again", "u5", "7")},
		[]v1beta1.Cluster{cluster("deleted", "u4", "2"), cluster("same", "u2", "3"), cluster("changed", "u3", "4"), cluster("again", "u6", "1")})
	want := []string{"added again u6 1", "added deleted u4 2", "changed changed u3 4", "removed again u5 7", "removed later u1 9"}
	if !slices.Equal(got, want) {
		t.Errorf("it is %q, want %q", got, want)
	}
}

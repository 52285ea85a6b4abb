package framework

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// TestCheckTold injects what a watch may do wrong.
func TestCheckTold(t *testing.T) {
	const added, modified, deleted = watch.Added, watch.Modified, watch.Deleted
	a := &Life{Name: "a", history: []write{{added, 10}, {modified, 12}, {modified, 14}}}
	gone := &Life{Name: "gone", history: []write{{added, 11}, {modified, 13}, {deleted, 0}}}
	doubt := &Life{Name: "doubt", history: []write{{added, 20}}, InDoubt: true}
	never := &Life{Name: "never", InDoubt: true}
	event := func(name string, kind watch.EventType, version uint64) told { return told{name, write{kind, version}} }
	whole := []told{
		event("a", added, 10), event("gone", added, 11), event("a", modified, 12), event("gone", modified, 13), event("a", modified, 14), event("gone", deleted, 15), event("doubt", added, 20),
	}
	with := func(at int, more ...told) []told {
		return slices.Insert(slices.Clone(whole), at, more...)
	}
	without := func(at int) []told { return slices.Delete(slices.Clone(whole), at, at+1) }
	// A watch from version 11 was too slow, and has listed at version 16.
	at := func(there map[string]uint64) []gap { return []gap{{11, 16, there}} }
	slow := []told{event("a", added, 10), event("gone", added, 11), event("a", relisted, 14), event("gone", deleted, 16), event("doubt", added, 20)}
	for _, test := range []struct {
		reason    string
		told      []told
		gaps      []gap
		rewritten bool
		want      []string
	}{
		{reason: "all, once and in order", told: whole},
		{reason: "the order of different clusters does not matter", told: append([]told{whole[1], whole[0]}, whole[2:]...)},
		{reason: "the creation is omitted", told: without(0), want: []string{"a: it missed ADDED in version 10"}},
		{reason: "a change is omitted", told: without(2), want: []string{"a: it missed MODIFIED in version 12"}},
		{reason: "the last change is omitted", told: without(4), want: []string{"a: it missed MODIFIED in version 14"}},
		{reason: "a deletion is omitted", told: without(5), want: []string{"gone: it missed DELETED in version 0"}},
		{reason: "a change before a deletion is omitted", told: without(3), want: []string{"gone: it missed MODIFIED in version 13"}},
		{reason: "nothing is told", want: []string{
			"a: it missed ADDED in version 10", "a: it missed MODIFIED in version 12", "a: it missed MODIFIED in version 14",
			"gone: it missed ADDED in version 11", "gone: it missed MODIFIED in version 13", "gone: it missed DELETED in version 0", "doubt: it missed ADDED in version 20",
		}},
		{reason: "a duplicate at once", told: with(3, whole[2]), want: []string{"a: it told of MODIFIED in version 12 after version 12"}},
		{reason: "a duplicate later", told: with(7, whole[0]), want: []string{"a: it told of ADDED in version 10 after version 14"}},
		{reason: "a second deletion", told: with(6, event("gone", deleted, 16)), want: []string{"gone: it told of DELETED in version 16, which nobody wrote"}},
		{reason: "two are swapped", told: []told{whole[0], whole[1], whole[4], whole[3], whole[2], whole[5], whole[6]}, want: []string{
			"a: it missed MODIFIED in version 12", "a: it told of MODIFIED in version 12 after version 14",
		}},
		{reason: "a change is told as another", told: append([]told{event("a", modified, 10)}, whole[1:]...), want: []string{"a: it told of MODIFIED in version 10, which was ADDED"}},
		{reason: "a deletion is told, but was none", told: with(7, event("a", deleted, 30)), want: []string{"a: it told of DELETED in version 30, which nobody wrote"}},
		{reason: "a write in doubt was applied", told: with(7, event("doubt", modified, 21))},
		{reason: "a removal in doubt was applied", told: with(7, event("doubt", deleted, 21))},
		{reason: "a creation in doubt was applied", told: with(7, event("never", added, 21))},
		{reason: "a write in doubt was applied twice", told: with(7, event("doubt", modified, 21), event("doubt", modified, 22)), want: []string{"doubt: it told of MODIFIED in version 22, which nobody wrote"}},
		{reason: "a change that nobody wrote", told: with(3, event("a", modified, 13)), want: []string{"a: it told of MODIFIED in version 13, which nobody wrote"}},
		{reason: "a cluster that nobody wrote", told: with(3, event("b", added, 13)), want: []string{"it told of 1 changes of b, which nobody wrote"}},
		{reason: "rewritten by others", told: with(7, event("a", modified, 30), event("doubt", modified, 31), event("doubt", modified, 32)), rewritten: true},
		{reason: "rewritten by others between two changes", told: with(4, event("a", modified, 13)), rewritten: true},
		{reason: "rewritten by others, and a change is omitted", told: append(without(2), event("a", modified, 30)), rewritten: true, want: []string{"a: it missed MODIFIED in version 12"}},
		{reason: "others may not delete", told: with(7, event("a", deleted, 30)), rewritten: true, want: []string{"a: it told of DELETED in version 30, which nobody wrote"}},
		{reason: "a list stands for what was before it", told: slow, gaps: at(map[string]uint64{"a": 14})},
		{reason: "a list without a gap stands for nothing", told: slow, want: []string{"a: it missed MODIFIED in version 12", "gone: it missed MODIFIED in version 13"}},
		{reason: "a list is of an older version", told: append([]told{event("a", added, 10), event("a", relisted, 12)}, append(slow[1:2:2], slow[3:]...)...), gaps: at(map[string]uint64{"a": 12}), want: []string{"a: it missed MODIFIED in version 14"}},
		{reason: "a list leaves a cluster out", told: append([]told{event("a", added, 10), event("a", deleted, 16)}, append(slow[1:2:2], slow[3:]...)...), gaps: at(nil),
			want: []string{"a: it missed MODIFIED in version 12", "a: it missed MODIFIED in version 14", "a: it told of DELETED in version 16, which nobody wrote"}},
		{reason: "a list has what was deleted", told: append(slow[:3:3], event("gone", relisted, 13), slow[4]), gaps: at(map[string]uint64{"a": 14, "gone": 13}), want: []string{"gone: it missed DELETED in version 0"}},
		{reason: "all of a life was before a list", told: append(slow[:1:1], slow[2], slow[4]), gaps: []gap{{10, 16, map[string]uint64{"a": 14}}}},
		{reason: "a list does not stand for what came after it", told: slow[:4], gaps: at(map[string]uint64{"a": 14}), want: []string{"doubt: it missed ADDED in version 20"}},
	} {
		got := checkTold(test.told, test.gaps, []*Life{a, gone, doubt, never}, test.rewritten)
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s:\n%s\nwant:\n%s", test.reason, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// TestBehind expects a watch to be waited for until it told the last of each life.
func TestBehind(t *testing.T) {
	lives := []*Life{
		{Name: "a", history: []write{{watch.Added, 10}, {watch.Modified, 12}}},
		{Name: "gone", history: []write{{watch.Added, 11}, {watch.Deleted, 0}}},
		{Name: "never", InDoubt: true},
	}
	w := newWatcher("w", "", nil, nil)
	for _, step := range []struct {
		name, version string
		kind          watch.EventType
		behind        int
	}{
		{"a", "10", watch.Added, 2}, {"gone", "11", watch.Added, 2}, {"a", "12", watch.Modified, 1}, {"", "13", watch.Bookmark, 1}, {"gone", "14", watch.Deleted, 0}, {"a", "15", watch.Modified, 0},
	} {
		if err := w.take(step.kind, step.name, step.version); err != nil {
			t.Fatal(err)
		}
		if got := w.behind(lives); got != step.behind {
			t.Errorf("after version %s, %d lives are waited for, want %d", step.version, got, step.behind)
		}
	}
	if len(w.told) != 5 || w.version != "15" {
		t.Errorf("it was told %v and got to version %s", w.told, w.version)
	}
	if err := w.take(watch.Added, "b", ""); err == nil {
		t.Error("an event without a version is taken")
	}
}

func TestPercentile(t *testing.T) {
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(i+1))
	}
	for _, test := range []struct {
		reason        string
		of            []time.Duration
		percent, want int
	}{
		{"half", all, 50, 100}, {"nearly all", all, 99, 198}, {"all", all, 100, 200},
		{"one is any of one", all[:1], 99, 1}, {"the larger of two", all[:2], 99, 2}, {"the smaller of two", all[:2], 50, 1},
	} {
		if got := percentile(test.of, test.percent); int(got) != test.want {
			t.Errorf("%s: %d, want %d", test.reason, got, test.want)
		}
	}
}

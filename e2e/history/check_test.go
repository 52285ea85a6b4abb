package history

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// in returns a cluster in a version, of the UID that its key and generation make.
func in(key, uid string, version uint64, trail string) Cluster {
	return Cluster{Key: key, Version: version, UID: uid, ID: "id-" + uid, Trail: trail}
}

// asked returns an operation that was answered.
func asked(kind Kind, key, write string, call, answer time.Duration, result Result, found ...Cluster) Operation {
	return Operation{Kind: kind, Key: key, Write: write, Call: call, Return: answer, Result: result, Found: found}
}

// good returns a history that shows nothing wrong: a is created and changed, b is created,
// deleted and created again. Of two changes of a without an answer, one was applied.
func good() History {
	a5, a7, a8, a11 := in("a", "a", 5, "w1"), in("a", "a", 7, "w1 w3"), in("a", "a", 8, "w4"), in("a", "a", 11, "w4 w8")
	b6, b9, b10 := in("b", "b", 6, "w2"), in("b", "b", 9, "w2"), in("b", "b2", 10, "w7")
	replace := asked(Replace, "a", "w4", 40, 50, Done, a8)
	refused := asked(Replace, "a", "w5", 45, 55, Conflict)
	replace.From, refused.From = 7, 7
	list := asked(List, "", "", 60, 65, Done, a8, b6)
	last := asked(List, "", "", 200, 205, Done, a11, b10)
	list.Listed, last.Listed = 8, 11
	h := History{Operations: []Operation{
		asked(Create, "a", "w1", 0, 10, Done, a5), asked(Create, "b", "w2", 5, 15, Done, b6),
		asked(Append, "a", "w3", 20, 30, Done, a7), asked(Get, "a", "", 32, 35, Done, a7),
		replace, refused, list,
		asked(Delete, "b", "d1", 70, 75, Done, Cluster{UID: "b"}), asked(Get, "b", "", 80, 82, Missing), asked(Append, "b", "w6", 85, 87, Missing),
		asked(Create, "b", "w7", 90, 95, Done, b10), asked(Create, "a", "w0", 96, 98, Exists), asked(Create, "c", "w10", 96, 99, Taken),
		asked(Append, "a", "w8", 100, Open, Unanswered), asked(Append, "a", "w9", 100, Open, Unanswered),
		asked(Get, "a", "", 130, 135, Done, a11), last,
	}}
	events := []Event{{a5, watch.Added, 11}, {b6, watch.Added, 12}, {a7, watch.Modified, 31}, {a8, watch.Modified, 51}, {b9, watch.Deleted, 76}, {b10, watch.Added, 94}, {a11, watch.Modified, 120}}
	for _, name := range []string{"watch 0", "watch 1"} {
		h.Watches = append(h.Watches, Watch{Name: name, From: 3, To: 12, Events: slices.Clone(events)})
	}
	return h
}

// operation returns the operation of a write.
func (h *History) operation(write string) *Operation {
	return &h.Operations[slices.IndexFunc(h.Operations, func(o Operation) bool { return o.Write == write })]
}

// read returns the operation that was sent at a time.
func (h *History) read(call time.Duration) *Operation {
	return &h.Operations[slices.IndexFunc(h.Operations, func(o Operation) bool { return o.Call == call })]
}

// events changes what each watch was told.
func (h *History) events(change func([]Event) []Event) {
	for i := range h.Watches {
		h.Watches[i].Events = change(h.Watches[i].Events)
	}
}

// without leaves an event out.
func without(version uint64) func([]Event) []Event {
	return func(events []Event) []Event {
		return slices.DeleteFunc(events, func(e Event) bool { return e.Version == version })
	}
}

// with adds an event in its place.
func with(event Event) func([]Event) []Event {
	return func(events []Event) []Event {
		at := slices.IndexFunc(events, func(e Event) bool { return e.Version > event.Version })
		if at < 0 {
			return append(events, event)
		}
		return slices.Insert(events, at, event)
	}
}

// last is the list at the end.
func (h *History) last() *Operation { return &h.Operations[len(h.Operations)-1] }

func TestGood(t *testing.T) {
	for name, change := range map[string]func(*History){
		"as it is": func(*History) {},
		"the write without an answer is applied after the last list": func(h *History) {
			h.events(without(11))
			a8 := in("a", "a", 8, "w4")
			h.read(130).Found, h.last().Found[0], h.last().Listed = []Cluster{a8}, a8, 10
		},
		"a write is answered long after it was applied": func(h *History) { h.operation("w3").Call = 11; h.operation("w3").Return = 31 },
		"a watch begins again": func(h *History) {
			events := h.Watches[1].Events
			h.Watches[1] = Watch{Name: "watch 1", From: 3, To: 7, Events: events[:3]}
			h.Watches = append(h.Watches, Watch{Name: "again", From: 9, To: 12, Events: events[5:]})
		},
		"a creation is answered with what was made of the cluster since": func(h *History) {
			h.operation("w1").Return, h.operation("w1").Found = 36, []Cluster{in("a", "a", 7, "w1 w3")}
		},
		"an operator stores a cluster again": func(h *History) {
			h.Rewritten = true
			h.events(with(Event{in("b", "b2", 12, "w7"), watch.Modified, 125}))
			h.last().Found[1].Version, h.last().Listed = 12, 12
		},
		"an operator stores a cluster again after the last event": func(h *History) {
			h.Rewritten = true
			h.last().Found[1].Version, h.last().Listed = 12, 12
		},
		"a deletion without an answer was applied": func(h *History) {
			d := h.operation("d1")
			d.Result, d.Return, d.Found = Unanswered, Open, nil
		},
		"a creation with a spec.id that is taken is undone": func(h *History) {
			h.events(with(Event{in("c", "c", 12, "w10"), watch.Added, 97}))
			h.events(func(events []Event) []Event {
				return append(events, Event{in("c", "c", 13, "w10"), watch.Deleted, 98})
			})
			for i := range h.Watches {
				h.Watches[i].To = 13
			}
			h.last().Listed = 13
			slices.SortFunc(h.Watches[0].Events, func(a, b Event) int { return int(a.Version) - int(b.Version) })
			slices.SortFunc(h.Watches[1].Events, func(a, b Event) int { return int(a.Version) - int(b.Version) })
			h.read(130).Call = 96 // before, or its version would be known
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			change(&h)
			if problems := Check(h); len(problems) > 0 {
				t.Error(Summary(problems))
			}
		})
	}
}

// TestRefused breaks one thing after the other, and expects each to be found.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*History)
		rule   Rule
		says   string
	}{
		"an acknowledged creation is missing at the end": {func(h *History) { h.last().Found = h.last().Found[:1] }, Lost, "b is nothing there"},
		"an acknowledged change is missing at the end":   {func(h *History) { h.last().Found[0] = in("a", "a", 7, "w1 w3") }, Lost, `a is "w1 w3" in version 7`},
		"a deleted cluster is back at the end":           {func(h *History) { h.last().Found[1] = in("b", "b", 6, "w2") }, Lost, "b is"},
		"no watch reported an acknowledged write":        {func(h *History) { h.events(without(7)) }, Lost, "no watch reported append of a (write w3)"},
		"no watch reported an acknowledged deletion":     {func(h *History) { h.events(without(9)) }, Lost, "no watch reported delete of b"},
		"watches reported another version": {func(h *History) {
			h.operation("w4").Found[0].Version = 9
		}, Lost, "watches were told"},

		"a read is stale":                     {func(h *History) { h.read(32).Found = []Cluster{in("a", "a", 5, "w1")} }, Linearizable, "get of a by client 0"},
		"a read shows what was never written": {func(h *History) { h.read(32).Found[0].Trail = "w1 w2" }, Linearizable, "get of a"},
		"a read shows another version":        {func(h *History) { h.read(32).Found[0].Version = 6 }, Linearizable, "get of a"},
		"a creation is answered with what was made of the cluster later": {func(h *History) {
			h.operation("w1").Return, h.operation("w1").Found = 36, []Cluster{in("a", "a", 8, "w4")}
		}, Linearizable, "get of a"},
		"a deleted cluster is read": {func(h *History) {
			h.read(80).Result, h.read(80).Found = Done, []Cluster{in("b", "b", 6, "w2")}
		}, Linearizable, "get of b"},
		"a cluster that exists is missing": {func(h *History) { h.read(32).Result, h.read(32).Found = Missing, nil }, Linearizable, "get of a"},
		"a creation is refused where there is nothing": {func(h *History) {
			*h.operation("w6") = asked(Create, "b", "w6", 85, 87, Exists)
		}, Linearizable, "create of b"},
		"two replacements of one version succeed": {func(h *History) {
			h.operation("w5").Result, h.operation("w5").Found = Done, []Cluster{in("a", "a", 9, "w5")}
		}, Linearizable, "replace of a"},
		"a replacement is refused though nothing changed": {func(h *History) { h.operation("w4").Result, h.operation("w4").Found = Conflict, nil }, Watched, "it was refused"},
		"a write without an answer is seen, and is gone again": {func(h *History) {
			h.events(without(11))
			h.last().Found[0], h.last().Listed = in("a", "a", 8, "w4"), 10
		}, Linearizable, "get of a"},
		"a replacement forgets what came before its version": {func(h *History) { h.operation("w4").From = 5 }, Linearizable, "replace of a"},

		"a later write has a lower version": {func(h *History) {
			h.operation("w7").Found[0].Version = 4
			h.last().Found[1].Version = 4
			h.events(without(10))
			h.events(with(Event{in("b", "b2", 4, "w7"), watch.Added, 94}))
		}, Backward, "create of b (write w7)"},
		"a later list has a lower version":            {func(h *History) { h.read(60).Listed, h.read(60).Found[0] = 7, in("a", "a", 7, "w1 w3") }, Backward, "list of all"},
		"a later write has the version of a deletion": {func(h *History) { h.read(80).Call, h.operation("w3").Call, h.operation("w3").Return = 90, 80, 85 }, Backward, "append of a"},

		"a list mixes times":  {func(h *History) { h.read(60).Found[0] = in("a", "a", 7, "w1 w3") }, Snapshot, "a is"},
		"a list lacks one":    {func(h *History) { h.read(60).Found = h.read(60).Found[:1] }, Snapshot, "b is nothing there"},
		"a list has too much": {func(h *History) { h.read(60).Found = append(h.read(60).Found, in("c", "c", 8, "w9")) }, Snapshot, "c is"},

		"two clusters share an id": {func(h *History) {
			h.events(func(events []Event) []Event {
				for i := range events {
					events[i].ID = "id"
				}
				return events
			})
		}, Identity, "a and b both have id"},
		"two clusters of a list share an id": {func(h *History) { h.read(60).Found[0].ID, h.read(60).Found[1].ID = "id", "id" }, Identity, "a and b both have id"},

		"a watch misses an event":       {func(h *History) { h.Watches[1].Events = without(8)(h.Watches[1].Events) }, Watched, "watch 1 did not report version 8"},
		"a watch misses the last event": {func(h *History) { h.Watches[1].Events = without(11)(h.Watches[1].Events) }, Watched, "watch 1 did not report version 11"},
		"an event is told twice":        {func(h *History) { h.Watches[0].Events = slices.Insert(h.Watches[0].Events, 2, h.Watches[0].Events[1]) }, Watched, "watch 0 was told version 6 twice"},
		"events are out of order": {func(h *History) {
			e := h.Watches[0].Events
			e[1], e[2] = e[2], e[1]
		}, Watched, "watch 0 was told version 6 after 7"},
		"two watches are told differently": {func(h *History) { h.Watches[1].Events[2].Trail = "w1" }, Watched, "another watch"},
		"no client asked for a change": {func(h *History) {
			h.events(with(Event{in("c", "c", 10, "w99"), watch.Added, 85}))
			h.events(without(9))
		}, Watched, "no client asked for it"},
		"no client asked for a deletion": {func(h *History) {
			h.operation("d1").Key = "c"
		}, Watched, "no client asked for it"},
		"a cluster is stored again without leave": {func(h *History) {
			h.events(with(Event{in("b", "b2", 12, "w7"), watch.Modified, 125}))
			h.last().Found[1].Version, h.last().Listed = 12, 12
		}, Watched, "no client asked for it"},
		"a write is applied twice": {func(h *History) {
			h.events(func(events []Event) []Event {
				return append(events, Event{in("a", "a", 12, "w4 w8 w8"), watch.Modified, 126})
			})
			h.last().Found[0], h.last().Listed = in("a", "a", 12, "w4 w8 w8"), 12
		}, Watched, "it was applied before"},
		"a refused write is applied": {func(h *History) {
			h.events(func(events []Event) []Event {
				return append(events, Event{in("a", "a", 12, "w5"), watch.Modified, 126})
			})
		}, Watched, "it was refused"},
		"a change is told before it is asked for": {func(h *History) { h.operation("w3").Call = 40 }, Watched, "before it was asked for"},
		"what exists is added":                    {func(h *History) { h.Watches[0].Events[2].Type, h.Watches[1].Events[2].Type = watch.Added, watch.Added }, Watched, "it existed"},
		"what is gone is modified":                {func(h *History) { h.events(without(6)) }, Watched, "it did not exist"},

		"no list at the end":      {func(h *History) { h.Operations = h.Operations[:len(h.Operations)-1] }, Incomplete, "not with a list"},
		"the last list too early": {func(h *History) { h.last().Call = 131 }, Incomplete, "before everything else"},
		"no watch":                {func(h *History) { h.Watches = nil }, Incomplete, "nothing was watched"},
		"watches are behind":      {func(h *History) { h.Watches[0].To, h.Watches[1].To = 8, 8 }, Incomplete, "up to version 8 only"},
		"watches began again too late": {func(h *History) {
			for i := range h.Watches {
				h.Watches[i].To, h.Watches[i].Events = 7, h.Watches[i].Events[:3]
			}
			h.Watches = append(h.Watches, Watch{Name: "again", From: 9, To: 12})
		}, Incomplete, "no watch reported versions 8 to 9"},
		"nothing": {func(h *History) { *h = History{} }, Incomplete, "nothing was asked"},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			test.change(&h)
			problems := Check(h)
			if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Rule == test.rule && strings.Contains(p.Text, test.says) }) {
				t.Errorf("no problem %q says %q, of\n%s", test.rule, test.says, Summary(problems))
			}
		})
	}
}

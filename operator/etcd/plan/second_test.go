package plan

import (
	"strings"
	"testing"
)

// TestSecondFailure has the disk of each member die for good at each step of each change of
// etcd's members. Either the operator gets over it on its own, or the quorum counts as lost, so
// that a person can decide with what etcd continues: with a copy that has all that was
// acknowledged, where one is left.
func TestSecondFailure(t *testing.T) {
	for _, change := range []struct {
		name    string
		members int
		begin   func(*world)
	}{
		{"a person replaces a member", 3, func(w *world) { w.spec.Replace = []string{"a2"} }},
		{"a member moves to another class", 3, func(w *world) { w.class = 1 }},
		{"a member has lost its data", 3, func(w *world) { w.wipe(1) }},
		{"a member of five has lost its data", 5, func(w *world) { w.wipe(1) }},
		{"one becomes three", 1, func(w *world) { w.spec.Replicas = 3 }},
		{"one becomes five", 1, func(w *world) { w.spec.Replicas = 5 }},
		{"three become five", 3, func(w *world) { w.spec.Replicas = 5 }},
		{"five become three", 5, func(w *world) { w.spec.Replicas = 3 }},
		{"three become one", 3, func(w *world) { w.spec.Replicas = 1 }},
		{"three come back after a recovery", 0, func(*world) {}},
	} {
		t.Run(strings.ReplaceAll(change.name, " ", "-"), func(t *testing.T) {
			ends := map[string]int{}
			for seed := uint64(1); seed <= 20; seed++ {
				for step, over := 0, false; !over; step++ {
					for ordinal := range 5 {
						w := newRecovered(seed, 3)
						if change.members > 0 {
							w = newWorld(seed, change.members)
						}
						w.snapshot = true
						change.begin(w)
						over = w.steps(step)
						if !w.wipe(ordinal) {
							continue
						}
						end := w.wayOut()
						if ends[end]++; strings.HasPrefix(end, "stuck") || w.broken != "" {
							t.Fatalf("seed %d: the disk of member %d dies at step %d: %s %s\nrecord %+v\nobserved %+v", seed, ordinal, step, end, w.broken, w.record, w.observe())
						}
					}
				}
			}
			if t.Log(ends); ends["all is as it is asked for"] == 0 && ends["a person decides"] == 0 {
				t.Error("no failure has hit it")
			}
		})
	}
}

// wipe has the disk of a member die, and reports whether it had data.
func (w *world) wipe(ordinal int) bool {
	v := w.volumes[ordinal]
	if v == nil || v.of == "" || v.abandoned {
		return false
	}
	v.of, v.index = "", 0
	return true
}

// steps takes so many steps, and reports whether there are no more.
func (w *world) steps(steps int) (over bool) {
	for range steps {
		w.tick()
		next := Next(w.spec, w.record, w.observe())
		if next.Action == Done {
			return true
		}
		w.act(next)
	}
	return false
}

// wayOut continues until all is as it is asked for, or a person can decide.
func (w *world) wayOut() string {
	const most = 500
	var next Step
	for range most {
		w.tick()
		if QuorumLost(w.held()) {
			return w.decidable()
		}
		next = Next(w.spec, w.record, w.observe())
		voters, intact, running := w.count()
		if next.Action == Done && voters == w.spec.Replicas && intact == voters && running == voters {
			return "all is as it is asked for"
		}
		w.act(next)
	}
	return "stuck: " + string(next.Action) + ": " + next.Message
}

// held is what an operator knows of the members' data: those that run without a leader say who
// votes, and those that are empty have guards that say so.
func (w *world) held() (out []Held) {
	var voters []string
	for _, m := range w.list {
		if !m.learner {
			voters = append(voters, m.id)
		}
	}
	for ordinal, id := range w.record.IDs {
		v, p := w.volumes[ordinal], w.pods[ordinal]
		h := Held{ID: id, Unsure: ordinal == w.record.Joining || ordinal == w.record.Leaving, Leaves: ordinal == w.record.Leaving}
		h.Gone = v != nil && v.of == "" && p != nil && !p.down || v == nil && ordinal == w.record.Joining
		if m := w.member(id); m != nil && w.runs(m) && !w.quorum() {
			h.Voters = voters
		}
		out = append(out, h)
	}
	return out
}

// decidable says what a person can decide of a lost quorum.
func (w *world) decidable() string {
	if w.quorum() {
		return "stuck: the quorum counts as lost, and a majority runs"
	}
	for _, h := range w.held() {
		for ordinal, id := range w.record.IDs {
			if v := w.volumes[ordinal]; !h.Gone && id == h.ID && v != nil && v.of == id && v.index == w.acked {
				return "a person decides"
			}
		}
	}
	// The disks that had all that was acknowledged are those that died.
	return "only a backup, or an older copy, is left"
}

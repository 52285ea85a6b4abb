package plan

import (
	"flag"
	"testing"
	"time"
)

var steps = flag.Int("steps", 1_000_000, "how many steps the simulation has")

// TestSimulation lets operators act on a model of etcd while members die, come back and
// lose their data, pods are deleted, nodes come and go and people change their minds. An
// operator may be killed before or after what it does, and may act on what it saw before
// something else went wrong. Nothing that was acknowledged is ever lost, no step of ours
// leaves too few voters, and whenever the faults end, all becomes what was asked for.
func TestSimulation(t *testing.T) {
	start, taken, worlds, longest := time.Now(), 0, 0, 0
	actions := map[Action]int{}
	for seed := uint64(1); taken < *steps; seed++ {
		w := newWorld(seed, []int{1, 3, 5}[seed%3])
		if seed%4 == 0 {
			w = newRecovered(seed, []int{1, 3, 5}[seed%3])
		}
		worlds++
		var trace []Step
		for range 2000 {
			taken++
			seen := w.observe()
			for w.chance(30) {
				w.fault() // after it was seen
			}
			next := Next(w.spec, w.record, seen)
			if problem := unsafe(next, w.spec, w.record, seen); problem != "" {
				w.fail("%+v is unsafe: %s", next, problem)
			}
			if !w.chance(20) { // else the operator is killed before
				w.act(next)
				actions[next.Action]++
				trace = append(trace, next)
			}
			w.check()
			w.tick()
			w.check()
			if w.chance(1) {
				longest = max(longest, w.settle())
				trace = append(trace, Step{Action: "(settled)"})
			}
			if w.broken != "" {
				t.Fatalf("seed %d: %s\nrecord %+v\nobserved %+v\nlist %+v\nlast steps %+v", seed, w.broken, w.record, w.observe(), seen.List, trace[max(0, len(trace)-25):])
			}
		}
	}
	t.Logf("%d steps in %s, in %d worlds; all was as asked for %d steps after the last fault at the latest; actions %v", taken, time.Since(start).Round(time.Millisecond), worlds, longest, actions)
	for _, action := range []Action{AddLearner, Promote, Verify, Remove, MoveLeader, RecordStays, RecordLeft, Retain, DeleteClaim, ReleaseVolume, RecreateSet, DeletePod, TakeSnapshot, PointServers} {
		if actions[action] == 0 {
			t.Errorf("the simulation never came to %s", action)
		}
	}
}

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// etcdOf returns the record of an etcd of so many members, and what is observed of it while
// all is well.
func etcdOf(members int) (Record, Observed) {
	record := Record{Registry: "fleet", Formed: true, Target: members, Claimed: members, IDs: map[int]string{}, Joining: None, Leaving: None}
	seen := Observed{Known: true, Size: members, Named: members, Servers: members, Nodes: 5, Pods: map[int]Pod{}, Claims: map[int]Claim{}, Lost: map[int]string{}}
	for ordinal := range members {
		uid := fmt.Sprintf("claim-%d", ordinal)
		record.IDs[ordinal] = fmt.Sprintf("a%d", ordinal)
		seen.List = append(seen.List, Listed{ID: record.IDs[ordinal], Ordinal: ordinal, Named: true, Serves: true, Leads: ordinal == 0})
		seen.Pods[ordinal], seen.Claims[ordinal] = Pod{Claim: uid}, Claim{UID: uid}
	}
	return record, seen
}

// removedWithOneDown has one of five members, whose data was lost, be removed, and another one
// be silent.
func removedWithOneDown(r *Record, o *Observed) {
	delete(r.IDs, 1)
	o.List = slices.Delete(o.List, 1, 2)
	o.List[3].Serves, o.List[3].Leads = false, false
}

// unsafe says what would be wrong with a step, whatever it is decided from.
func unsafe(step Step, spec Spec, record Record, seen Observed) string {
	voters, serve, learners := 0, 0, 0
	var about Listed
	for _, m := range seen.List {
		if step.ID != "" && m.ID == step.ID {
			about = m
		}
		if m.Learner {
			learners++
			continue
		}
		voters++
		if m.Serves {
			serve++
		}
	}
	switch step.Action {
	case AddLearner:
		if learners > 0 || record.Joining != step.Ordinal || record.IDs[step.Ordinal] != "" {
			return "a second learner, or one that is not recorded"
		}
	case Promote:
		if !about.Learner || !about.Serves || record.Joining != step.Ordinal || serve+1 < (voters+1)/2+1 {
			return "a vote for one that has not caught up, or without a majority"
		}
	case Remove:
		switch {
		case about.ID == "" || record.Leaving != about.Ordinal:
			return "one that is not recorded to leave"
		case about.Learner:
		case about.Leads:
			return "the leader"
		case about.Serves && voters > 1 && seen.Servers == 1 && about.Ordinal == 0 && seen.Lost[0] == "":
			return "the only member that the servers use"
		case about.Serves:
			serve--
			fallthrough
		default:
			if voters == 1 || serve < (voters-1)/2+1 {
				return "a voter without which there is no majority"
			}
			if voters == 2 && spec.Replicas == 1 && !seen.Snapshot && seen.Lost[about.Ordinal] == "" && !slices.Contains(spec.Replace, about.ID) {
				return "all but one, without a snapshot"
			}
		}
	case DeleteClaim:
		if slices.ContainsFunc(seen.List, func(m Listed) bool { return m.Ordinal == step.Ordinal }) {
			return "the claim of a member"
		}
		if step.UID == "" || step.UID != seen.Claims[step.Ordinal].UID || step.Ordinal >= record.Claimed {
			return "a claim that is not known"
		}
		if record.IDs[step.Ordinal] != "" {
			return "the claim of a member that is recorded"
		}
		if record.Abandoned[step.Ordinal] == step.UID && !seen.Claims[step.Ordinal].Retained {
			return "what may be the only copy of what is abandoned"
		}
		if record.Leaving == step.Ordinal && step.Ordinal < spec.Replicas && !seen.Claims[step.Ordinal].Retained {
			return "the only copy of a member's old data"
		}
	case Resize:
		for _, m := range seen.List {
			if m.Ordinal >= step.Size {
				return "no pod for a member"
			}
		}
	case PointServers:
		for ordinal := range step.Size {
			if record.IDs[ordinal] == "" {
				return "servers to a member that there is not"
			}
		}
	case ReleaseVolume:
		if !seen.Kept || learners > 0 || serve < voters || voters < spec.Replicas || record.Joining != None || record.Leaving != None || seen.Alarm != "" {
			return "an old volume, before the new member serves"
		}
	case Wait, Hold:
		if step.Message == "" {
			return "nothing to read"
		}
	case Done:
		if len(record.IDs) != spec.Replicas || seen.Size != spec.Replicas || seen.Servers != spec.Replicas || learners > 0 {
			return "the end, too early"
		}
	default:
	}
	return ""
}

// TestEveryState goes through every combination of what members can be, how many are asked
// for and how far a change is, and expects no step that is unsafe.
func TestEveryState(t *testing.T) {
	seenActions, states := map[Action]int{}, 0
	for _, members := range []int{1, 2, 3, 4, 5} {
		for combination := range power(4, members) {
			for _, replicas := range []int{1, 3, 5} {
				for change := range 15 * 3 {
					record, seen := etcdOf(members)
					spec := Spec{Replicas: replicas}
					if change >= 15 { // it has got further
						record.Target = replicas
					}
					if change >= 30 {
						seen.Named, seen.Servers, seen.List[0].Leads, seen.List[members-1].Leads = 5, 1, false, true
					}
					for ordinal, rest := 0, combination; ordinal < members; ordinal, rest = ordinal+1, rest/4 {
						switch m := &seen.List[ordinal]; rest % 4 {
						case 1:
							m.Serves = false
						case 2:
							m.Serves, seen.Lost[ordinal] = false, "its directory is empty"
						case 3:
							spec.Replace = append(spec.Replace, m.ID)
						}
					}
					changing(change%15, members, &record, &seen)
					step := Next(spec, record, seen)
					states++
					seenActions[step.Action]++
					if problem := unsafe(step, spec, record, seen); problem != "" {
						t.Fatalf("%d members in the states %b, %d asked for, change %d: %+v: %s\nrecord %+v\nobserved %+v", members, combination, replicas, change, step, problem, record, seen)
					}
				}
			}
		}
	}
	t.Logf("%d states, and these steps: %v", states, seenActions)
	for _, action := range []Action{Done, Wait, Hold, RecordTarget, IssueNames, RecordJoining, AddLearner, RecordID, Resize, Promote, Verify, RecordLeaving, RecordStays, MoveLeader, Remove, RecordRemoved, RecordClaimed, Retain, DeleteClaim, DeletePod, RecordLeft, PointServers, TakeSnapshot} {
		if seenActions[action] == 0 {
			t.Errorf("no state leads to %s", action)
		}
	}
}

func power(base, exponent int) int {
	out := 1
	for range exponent {
		out *= base
	}
	return out
}

// changing brings a change of members to one of the points at which an operator can die.
func changing(change, members int, record *Record, seen *Observed) {
	last := members - 1
	gone := func() {
		seen.List = slices.DeleteFunc(seen.List, func(m Listed) bool { return m.Ordinal == last })
	}
	next := Listed{ID: "b", Ordinal: members, Learner: true}
	if change > 0 && change < 7 {
		record.Claimed = members + 1
	}
	switch change {
	case 1:
		record.Joining = members
	case 2: // added, and not recorded
		record.Joining, seen.List = members, append(seen.List, next)
	case 3, 4, 5: // recorded; started; promoted
		next.Named, next.Serves, next.Learner = change > 3, change > 3, change < 5
		record.Joining, record.IDs[members], seen.List = members, "b", append(seen.List, next)
		seen.Size = members + change - 3
	case 6: // someone removed it
		record.Joining, record.IDs[members] = members, "b"
	case 7, 8:
		record.Leaving, record.Claim = last, seen.Claims[last].UID
		seen.Snapshot = change == 8
	case 9: // it is removed
		record.Leaving, record.Claim = last, seen.Claims[last].UID
		gone()
	case 10, 11, 12: // and that is recorded; its volume is retained; its claim is deleted
		record.Leaving, record.Claim = last, seen.Claims[last].UID
		delete(record.IDs, last)
		gone()
		seen.Claims[last] = Claim{UID: record.Claim, Retained: change > 10, Terminating: change > 11}
	case 13: // an old claim, and certificates without the names
		seen.Claims[members], record.Claimed = Claim{UID: "old"}, members+1
	case 14: // and all of that is gone
		record.Claimed = members + 1
	}
	record.IDs = maps.Clone(record.IDs)
}

// TestDecisions spells some of them out.
func TestDecisions(t *testing.T) {
	for _, test := range []struct {
		reason  string
		members int
		spec    Spec
		change  func(*Record, *Observed)
		want    Step
		says    string
	}{
		{"as it is asked for", 3, Spec{Replicas: 3}, nil, Step{Action: Done, Ordinal: None}, ""},
		{"an operator that knows nothing", 3, Spec{Replicas: 3}, func(r *Record, _ *Observed) { r.Formed = false }, wait(""), "has not formed"},
		{"no majority", 3, Spec{Replicas: 5}, func(_ *Record, o *Observed) { o.Known = false }, wait(""), "no majority"},
		{"a number that the schema refuses", 3, Spec{Replicas: 2}, nil, hold(""), "set spec.etcd.replicas to 1, 3 or 5"},
		{"an alarm", 3, Spec{Replicas: 5}, func(_ *Record, o *Observed) { o.Alarm = "NOSPACE" }, hold(""), "alarm NOSPACE is raised"},
		{"full, while one joins", 3, Spec{Replicas: 3}, func(r *Record, o *Observed) {
			r.Joining, o.List[1].Learner, o.Alarm = 1, true, NoSpace
		}, Step{Action: Promote, Ordinal: 1, ID: "a1"}, ""},
		{"full, and one is lost", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.Alarm, o.List[1].Serves, o.Lost[1] = NoSpace, false, "it is empty" }, Step{Action: RecordLeaving, Ordinal: 1, ID: "a1", UID: "claim-1"}, "it is empty"},
		{"full, and one is asked for", 3, Spec{Replicas: 3, Replace: []string{"a1"}}, func(_ *Record, o *Observed) { o.Alarm = NoSpace }, Step{Action: Done, Ordinal: None}, ""},
		{"full, and one was removed to be replaced", 3, Spec{Replicas: 3}, func(r *Record, o *Observed) {
			delete(r.IDs, 1)
			delete(o.Claims, 1)
			o.Alarm, o.List = NoSpace, slices.Delete(o.List, 1, 2)
		}, Step{Action: RecordJoining, Ordinal: 1}, ""},
		{"full, half-way from three to one", 3, Spec{Replicas: 1}, func(r *Record, o *Observed) {
			r.Target, o.Servers, o.Snapshot, o.Alarm = 1, 1, true, NoSpace
		}, Step{Action: RecordLeaving, Ordinal: 2, ID: "a2", UID: "claim-2"}, ""},
		{"the only one is to be replaced, and more are asked for", 1, Spec{Replicas: 3, Replace: []string{"a0"}}, nil, Step{Action: RecordTarget, Ordinal: None, Size: 3}, ""},
		{"two are asked for, and one of them is missing by now", 3, Spec{Replicas: 3, Replace: []string{"a0", "a1"}}, func(r *Record, o *Observed) {
			delete(r.IDs, 0)
			o.List = o.List[1:]
			delete(o.Claims, 0)
		}, Step{Action: RecordJoining, Ordinal: 0}, ""},
		{"a claim of the last one that someone made", 1, Spec{Replicas: 3}, func(r *Record, o *Observed) { r.Target, o.Named, o.Claims[2] = 3, 3, Claim{UID: "x"} }, hold(""), "fleet-etcd-1 is not added: there is a claim for the volume of fleet-etcd-2, data-fleet-etcd-2, that the operator did not make; move its data away and delete it, or set spec.etcd.replicas back to 1"},
		{"a record that is older than etcd", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) {
			o.List = append(o.List, Listed{ID: "a3", Ordinal: 3, Named: true, Serves: true})
		}, hold(""), "record the ID in its key member-id.fleet-etcd-3"},
		{"the alarm of a member that was removed", 3, Spec{Replicas: 3}, func(r *Record, o *Observed) {
			r.Leaving, o.Outdated = 1, true
			delete(r.IDs, 1)
			o.List = slices.Delete(o.List, 1, 2)
		}, Step{Action: Disarm, Ordinal: None}, ""},
		{"a member of someone else", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.List = append(o.List, Listed{ID: "x", Ordinal: None}) }, hold(""), "member x in etcd's list is none of this registry"},
		{"a learner of a person", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.List = append(o.List, Listed{ID: "x", Ordinal: 3, Learner: true}) }, hold(""), "fleet-etcd-3 with the ID x is in etcd's list but not recorded"},
		{"more are asked for", 1, Spec{Replicas: 3}, nil, Step{Action: RecordTarget, Ordinal: None, Size: 3}, ""},
		{"too few nodes", 1, Spec{Replicas: 3}, func(r *Record, o *Observed) { r.Target, o.Nodes = 3, 2 }, hold(""), "there is room for 2 of 3 members"},
		{"a claim that someone made", 1, Spec{Replicas: 3}, func(r *Record, o *Observed) { r.Target, o.Named, o.Claims[1] = 3, 3, Claim{UID: "x"} }, hold(""), "data-fleet-etcd-1, that the operator did not make"},
		{"a claim of before", 1, Spec{Replicas: 3}, func(r *Record, o *Observed) {
			r.Target, o.Named, o.Claims[1], r.Claimed = 3, 3, Claim{UID: "x"}, 3
		}, Step{Action: DeleteClaim, Ordinal: 1, UID: "x"}, ""},
		{"a voter is down, and more are asked for", 3, Spec{Replicas: 5}, func(_ *Record, o *Observed) { o.List[1].Serves = false }, wait(""), "members are added when fleet-etcd-1 serves again, or is replaced"},
		{"a voter is down, and more were asked for", 3, Spec{Replicas: 3}, func(r *Record, o *Observed) { r.Target, o.List[1].Serves = 5, false }, Step{Action: RecordTarget, Ordinal: None, Size: 3}, ""},
		{"a voter is down, and etcd would refuse the one that joins", 3, Spec{Replicas: 5}, func(r *Record, o *Observed) {
			r.Target, r.Joining, o.List[1].Serves = 5, 3, false
		}, wait(""), "fleet-etcd-3 is added when fleet-etcd-1 serves again, or is replaced"},
		{"a voter is down and asked for, and etcd would refuse the one that joins", 3, Spec{Replicas: 5, Replace: []string{"a1"}}, func(r *Record, o *Observed) {
			r.Target, r.Joining, o.List[1].Serves = 5, 3, false
		}, Step{Action: RecordLeft, Ordinal: 3}, ""},
		{"a voter is down, and fewer are asked for", 5, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.List[1].Serves = false }, wait(""), "when fleet-etcd-1 serves again, or is replaced"},
		{"a voter is down, and another one was lost and removed", 5, Spec{Replicas: 5}, removedWithOneDown, Step{Action: RecordJoining, Ordinal: 1}, ""},
		{"a voter is down, and another one is about to be added again", 5, Spec{Replicas: 5}, func(r *Record, o *Observed) {
			removedWithOneDown(r, o)
			r.Joining = 1
		}, Step{Action: AddLearner, Ordinal: 1}, ""},
		{"a voter is down and asked for, and another one was lost and removed", 5, Spec{Replicas: 5, Replace: []string{"a4"}}, removedWithOneDown, Step{Action: RecordLeaving, Ordinal: 4, ID: "a4", UID: "claim-4"}, "a person asked for it"},
		{"a voter serves and is asked for, and another one was lost and removed", 5, Spec{Replicas: 5, Replace: []string{"a3"}}, removedWithOneDown, Step{Action: RecordJoining, Ordinal: 1}, ""},
		{"no majority serves, and one was lost and removed", 5, Spec{Replicas: 5}, func(r *Record, o *Observed) {
			removedWithOneDown(r, o)
			o.List[0].Serves = false
		}, wait(""), "members are added when fleet-etcd-0 serves again, or is replaced"},
		{"fewer are asked for, and members hold different data", 5, Spec{Replicas: 3}, func(r *Record, o *Observed) {
			r.Target, o.Servers, o.Differs = 3, 3, "members fleet-etcd-0 and fleet-etcd-1 hold different data at revision 7"
		}, hold(""), "fleet-etcd-4 is not removed: members fleet-etcd-0 and fleet-etcd-1 hold different data at revision 7, and what is right might go with it"},
		{"fewer are asked for, and it is not known whether members hold the same data", 5, Spec{Replicas: 3}, func(r *Record, o *Observed) { r.Target, o.Servers, o.Uncompared = 3, 3, "no answer" }, wait(""), "fleet-etcd-4 is removed when it is known that all members hold the same data: no answer"},
		{"one leaves, and by now members hold different data", 5, Spec{Replicas: 3}, func(r *Record, o *Observed) { r.Target, r.Leaving, o.Servers, o.Differs = 3, 4, 3, "they differ" }, Step{Action: RecordStays, Ordinal: 4}, ""},
		{"one leaves, and by now it is not known whether members hold the same data", 5, Spec{Replicas: 3}, func(r *Record, o *Observed) {
			r.Target, r.Leaving, o.Servers, o.Uncompared = 3, 4, 3, "no answer"
		}, wait(""), "fleet-etcd-4 is removed when it is known"},
		{"members hold different data, and one of them is asked for", 5, Spec{Replicas: 3, Replace: []string{"a0"}}, func(r *Record, o *Observed) { r.Target, o.Servers, o.Differs = 3, 3, "they differ" }, Step{Action: RecordLeaving, Ordinal: 0, ID: "a0", UID: "claim-0"}, "a person asked for it"},
		{"a voter is down, and nothing is asked for", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.List[1].Serves = false }, Step{Action: Done, Ordinal: None}, ""},
		{"a voter is lost, before more are added", 3, Spec{Replicas: 5}, func(_ *Record, o *Observed) { o.List[1].Serves, o.Lost[1] = false, "it is empty" }, Step{Action: RecordLeaving, Ordinal: 1, ID: "a1", UID: "claim-1"}, "it is empty"},
		{"one is to run elsewhere", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.Moves = map[int]string{1: "its volume stays", 2: "its volume stays"} }, Step{Action: RecordLeaving, Ordinal: 1, ID: "a1", UID: "claim-1"}, "its volume stays"},
		{"one is to run elsewhere, and another one is down", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.List[0].Serves, o.Moves = false, map[int]string{1: "its volume stays"} }, Step{Action: Done, Ordinal: None}, ""},
		{"the only one is to run elsewhere", 1, Spec{Replicas: 1}, func(_ *Record, o *Observed) { o.Moves = map[int]string{0: "its volume stays"} }, hold(""), "fleet-etcd-0 can't be moved: its volume stays, and the only member has no other copy of its data: set spec.etcd.replicas to 3, and back to 1"},
		{"the only one is to run elsewhere, and more are asked for", 1, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.Moves = map[int]string{0: "its volume stays"} }, Step{Action: RecordTarget, Ordinal: None, Size: 3}, ""},
		{"one of two is to run elsewhere, on the way to one", 2, Spec{Replicas: 1}, func(r *Record, o *Observed) {
			r.Target, o.Servers, o.Snapshot, o.Moves = 1, 1, true, map[int]string{0: "its volume stays"}
		}, Step{Action: RecordLeaving, Ordinal: 1, ID: "a1", UID: "claim-1"}, ""},
		{"one is to run elsewhere that is all the servers use", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.Servers, o.Moves = 1, map[int]string{0: "its volume stays"} }, Step{Action: PointServers, Ordinal: None, Size: 3}, ""},
		{"a person asks for one that is all the servers use", 3, Spec{Replicas: 3, Replace: []string{"a0"}}, func(_ *Record, o *Observed) { o.Servers = 1 }, Step{Action: PointServers, Ordinal: None, Size: 3}, ""},
		{"servers are being replaced, to use others", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.Servers, o.Moves = 6, map[int]string{0: "its volume stays"} }, Step{Action: PointServers, Ordinal: None, Size: 3}, ""},
		{"one leaves that is all the servers use", 3, Spec{Replicas: 3}, func(r *Record, o *Observed) {
			r.Leaving, o.Servers, o.Moves = 0, 1, map[int]string{0: "its volume stays"}
		}, Step{Action: RecordStays, Ordinal: 0}, ""},
		{"all the servers use is lost", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.Servers, o.List[0].Serves, o.Lost[0] = 1, false, "it is empty" }, Step{Action: RecordLeaving, Ordinal: 0, ID: "a0", UID: "claim-0"}, "it is empty"},
		{"one was to run elsewhere, and another one is lost by now", 3, Spec{Replicas: 3}, func(r *Record, o *Observed) {
			r.Leaving, o.List[1].Serves, o.Lost[1], o.Moves = 0, false, "it is empty", map[int]string{0: "its volume stays"}
		}, Step{Action: RecordStays, Ordinal: 0}, ""},
		{"one was to run elsewhere, and another one is silent by now", 5, Spec{Replicas: 5}, func(r *Record, o *Observed) {
			r.Leaving, o.List[1].Serves, o.Moves = 0, false, map[int]string{0: "its volume stays"}
		}, Step{Action: RecordStays, Ordinal: 0}, ""},
		{"one was asked for, and another one is lost by now", 3, Spec{Replicas: 3, Replace: []string{"a0"}}, func(_ *Record, o *Observed) { o.List[1].Serves, o.Lost[1] = false, "it is empty" }, Step{Action: RecordLeaving, Ordinal: 1, ID: "a1", UID: "claim-1"}, "it is empty"},
		{"claims are to be of another class", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.Recreate = true }, Step{Action: RecreateSet, Ordinal: None}, ""},
		{"claims are to be of another class, and more members are asked for", 1, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.Recreate = true }, Step{Action: RecreateSet, Ordinal: None}, ""},
		{"an old volume need not be kept", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.Kept = true }, Step{Action: ReleaseVolume, Ordinal: None}, ""},
		{"an old volume need not be kept, and a member is down", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.Kept, o.List[0].Serves = true, false }, Step{Action: Done, Ordinal: None}, ""},
		{"an old volume need not be kept, and etcd is full", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) { o.Kept, o.Alarm = true, NoSpace }, Step{Action: Done, Ordinal: None}, ""},
		{"one has moved, and joins while another one is to move", 3, Spec{Replicas: 3, Replace: []string{"a2"}}, func(r *Record, o *Observed) {
			r.Joining, o.List[1].Learner, o.List[1].Named, o.List[1].Serves, o.Moves = 1, true, false, false, map[int]string{0: "its volume stays"}
		}, wait(""), "fleet-etcd-1 is being added, and does not serve yet"},
		{"one joins, and its new volume lies where it may not run", 3, Spec{Replicas: 3}, func(r *Record, o *Observed) {
			r.Joining, o.List[1].Learner, o.List[1].Named, o.List[1].Serves, o.Misplaced = 1, true, false, false, "its volume can be used on n1 only"
		}, hold(""), "fleet-etcd-1 is being added, and does not run: its volume can be used on n1 only"},
		{"it joins, and a person wants another volume for it", 3, Spec{Replicas: 3, Replace: []string{"a1"}}, func(r *Record, o *Observed) {
			r.Joining, o.List[1].Learner, o.List[1].Named, o.List[1].Serves, o.Misplaced = 1, true, false, false, "its volume can be used on n1 only"
		}, Step{Action: RecordLeaving, Ordinal: 1, ID: "a1", UID: "claim-1"}, ""},
		{"it joins, and serves all the same", 3, Spec{Replicas: 3}, func(r *Record, o *Observed) {
			r.Joining, o.List[1].Learner, o.Misplaced = 1, true, "its volume can be used on n1 only"
		}, Step{Action: Promote, Ordinal: 1, ID: "a1"}, ""},
		{"two of three are lost", 3, Spec{Replicas: 3}, func(_ *Record, o *Observed) {
			o.List[1].Serves, o.List[2].Serves, o.Lost[1] = false, false, "it is empty"
		}, hold(""), "only 1 of 3 voters serve without it, and 2 are needed"},
		{"the only one is to be replaced", 1, Spec{Replicas: 1, Replace: []string{"a0"}}, nil, hold(""), "fleet-etcd-0 is the only member"},
		{"a replacement that was asked for once", 3, Spec{Replicas: 3, Replace: []string{"gone"}}, nil, Step{Action: Done, Ordinal: None}, ""},
		{"fewer are asked for: servers first", 3, Spec{Replicas: 1}, func(r *Record, _ *Observed) { r.Target = 1 }, Step{Action: PointServers, Ordinal: None, Size: 1}, ""},
		{"to one only after a snapshot", 3, Spec{Replicas: 1}, func(r *Record, o *Observed) { r.Target, o.Servers = 1, 1 }, Step{Action: TakeSnapshot, Ordinal: None, Message: "one member has no other copy"}, ""},
		{"the highest goes first", 5, Spec{Replicas: 3}, func(r *Record, o *Observed) { r.Target, o.Servers = 3, 3 }, Step{Action: RecordLeaving, Ordinal: 4, ID: "a4", UID: "claim-4"}, ""},
		{"the leader hands over", 3, Spec{Replicas: 1}, func(r *Record, o *Observed) {
			r.Leaving, o.Snapshot, o.List[0].Leads, o.List[2].Leads = 2, true, false, true
		}, Step{Action: MoveLeader, Ordinal: 2, ID: "a2"}, ""},
		{"a learner that can't start makes room for a replacement", 3, Spec{Replicas: 5}, func(r *Record, o *Observed) {
			r.Joining, r.IDs[3], r.Claimed, o.Size = 3, "b", 4, 4
			o.List = append(o.List, Listed{ID: "b", Ordinal: 3, Learner: true})
			o.List[1].Serves, o.Lost[1] = false, "it is empty"
		}, Step{Action: RecordLeaving, Ordinal: 3, ID: "b"}, ""},
		{"a change of mind while it is added", 3, Spec{Replicas: 3}, func(r *Record, o *Observed) {
			r.Joining, r.IDs[3], r.Claimed = 3, "b", 4
			o.List = append(o.List, Listed{ID: "b", Ordinal: 3, Learner: true})
		}, Step{Action: RecordLeaving, Ordinal: 3, ID: "b"}, ""},
		{"a change of mind before it is added", 3, Spec{Replicas: 3}, func(r *Record, _ *Observed) { r.Joining, r.Claimed = 3, 4 }, Step{Action: RecordLeft, Ordinal: 3}, ""},
		{"a change of mind before it was removed", 3, Spec{Replicas: 3}, func(r *Record, _ *Observed) { r.Leaving = 2 }, Step{Action: RecordStays, Ordinal: 2}, ""},
	} {
		record, seen := etcdOf(test.members)
		if test.change != nil {
			test.change(&record, &seen)
		}
		got := Next(test.spec, record, seen)
		if !strings.Contains(got.Message, test.says) {
			t.Errorf("%s: it says %q", test.reason, got.Message)
		}
		if test.says != "" {
			got.Message = ""
			test.want.Message = ""
		}
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", test.reason, got, test.want)
		}
	}
}

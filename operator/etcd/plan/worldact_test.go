package plan

import (
	"slices"
	"strconv"
)

// member returns the member with an ID, nil when etcd has none.
func (w *world) member(id string) *member {
	i := slices.IndexFunc(w.list, func(m *member) bool { return m.id == id })
	if i < 0 {
		return nil
	}
	return w.list[i]
}

// act does a step as far as the model lets it: the state may be another one than was
// observed.
func (w *world) act(step Step) {
	ordinal := step.Ordinal
	switch step.Action {
	case RecordTarget:
		w.record.Target = step.Size
	case RecordJoining:
		w.record.Joining, w.record.Claimed = ordinal, max(w.record.Claimed, ordinal+1)
	case RecordID:
		w.record.IDs[ordinal] = step.ID
	case RecordLeaving:
		w.record.Joining, w.record.Leaving, w.record.Claim = None, ordinal, step.UID
	case RecordStays:
		w.record.Leaving, w.record.Claim = None, ""
	case RecordRemoved:
		delete(w.record.IDs, ordinal)
	case RecordClaimed:
		w.record.Claimed = step.Size
	case RecordLeft:
		delete(w.record.Abandoned, ordinal)
		w.record.Joining, w.record.Leaving, w.record.Claim = None, None, ""
	case Verify:
		if w.quorum() {
			w.record.Joining = None
		}
	case AddLearner, Promote, Remove:
		if w.quorum() {
			w.reconfigure(step)
		}
	case MoveLeader:
		for _, m := range w.list {
			if w.quorum() && !m.learner && m.ordinal != ordinal && w.runs(m) && w.volumes[m.ordinal].index == w.acked {
				w.leader = m.ordinal
			}
		}
	case IssueNames:
		w.named = step.Size
	case Resize:
		w.size = step.Size
	case PointServers:
		w.servers = step.Size
	case TakeSnapshot:
		w.snapshot = w.quorum()
	case Retain:
		if v := w.volumes[ordinal]; v != nil && v.uid == step.UID {
			v.retained = true
		}
	case DeleteClaim:
		w.deleteClaim(ordinal, step.UID)
	case DeletePod:
		w.pods[ordinal] = nil
	case ReleaseVolume:
		w.release()
	case RecreateSet:
		w.template = w.class
	case Done, Wait, Hold:
	}
}

// reconfigure changes etcd's members by its own rules: a learner at a time, one that has
// caught up is promoted, and a voter is removed if those that are connected are enough
// (mayRemoveMember), which is not asked of one that is down.
func (w *world) reconfigure(step Step) {
	m := w.member(step.ID)
	switch step.Action {
	case AddLearner:
		if slices.ContainsFunc(w.list, func(m *member) bool { return m.learner || m.ordinal == step.Ordinal }) {
			return
		}
		w.lastID++
		w.list = append(w.list, &member{id: "a" + strconv.Itoa(w.lastID), ordinal: step.Ordinal, learner: true})
	case Promote:
		if m == nil || !m.learner || !w.runs(m) || w.volumes[m.ordinal].index*10 < w.acked*9 {
			return
		}
		m.learner = false
		if !m.named {
			w.fail("a learner got a vote before it said its name")
		}
	default:
		voters, _, running := w.count()
		if m == nil || !m.learner && w.runs(m) && running-1 < 1+(voters-1)/2 {
			return
		}
		w.list = slices.DeleteFunc(w.list, func(other *member) bool { return other == m })
	}
	if voters, _, running := w.count(); voters == 0 || running < majority(voters) {
		w.fail("%s leaves %d of %d voters that run", step.Action, running, voters)
		return
	}
	w.commit(0) // the change itself is a write
}

func (w *world) deleteClaim(ordinal int, uid string) {
	v := w.volumes[ordinal]
	if v == nil || v.uid != uid {
		return
	}
	if v.terminating = true; v.abandoned && !v.retained {
		w.fail("the volume of a claim with data of before a recovery is deleted")
	}
	if v.abandoned {
		return
	}
	if v.retained {
		w.kept = append(w.kept, v)
	}
	if v.of == "" {
		return
	}
	if m := w.member(v.of); m != nil {
		w.fail("the claim of a member is deleted")
	}
	for _, m := range w.list {
		if other := w.volumes[m.ordinal]; !m.learner && other != nil && other != v && other.of == m.id && other.index == w.acked {
			return
		}
	}
	w.fail("the last copy of what was acknowledged is deleted")
}

// release has the oldest volume that was kept be deleted: what was acknowledged must be held
// by a majority of volumes that are members', whether these run or not.
func (w *world) release() {
	if len(w.kept) == 0 {
		return
	}
	w.kept = w.kept[1:]
	if voters, intact, _ := w.count(); intact < majority(voters) {
		w.fail("an old volume is deleted while %d of %d voters have their data", intact, voters)
	}
}

// check holds the model to what must be true at every moment.
func (w *world) check() {
	learners, best := 0, 0
	for _, m := range w.list {
		if m.learner {
			learners++
			continue
		}
		if v := w.volumes[m.ordinal]; v != nil && v.of == m.id {
			best = max(best, v.index)
		}
	}
	voters, _, _ := w.count()
	switch {
	case learners > 1:
		w.fail("there are %d learners", learners)
	case voters == 0 || len(w.list) > 5:
		w.fail("etcd has %d voters of %d members", voters, len(w.list))
	case best < w.acked:
		w.fail("%d acknowledged writes are lost", w.acked-best)
	case w.record.Joining != None && w.record.Leaving != None:
		w.fail("one member joins while another one leaves")
	}
}

// settle heals everything, and returns how many steps it takes until all is as it is asked
// for.
func (w *world) settle() int {
	w.nodes, w.spec.Replace = 5, nil
	if w.spec.Replicas == 1 {
		w.class = 0 // a single member does not move
	}
	const most = 2000
	for step := range most {
		for _, p := range w.pods {
			if p != nil {
				p.down = false
			}
		}
		w.tick()
		next := Next(w.spec, w.record, w.observe())
		voters, intact, running := w.count()
		if next.Action == Done && voters == w.spec.Replicas && intact == voters && running == voters && w.size == voters && w.servers == voters {
			return step
		}
		w.act(next)
		w.check()
	}
	w.fail("it never becomes what is asked for: %+v", Next(w.spec, w.record, w.observe()))
	return most
}

package simulation

import (
	"fmt"
	"slices"
	"time"
)

// disk is the data of an etcd member.
type disk struct {
	// cluster and member are the IDs that the data has, zero where there is no data.
	cluster, member uint64
	// index is how much of the log it holds, and other is not zero where it has other data than
	// what the log says.
	index, other int
	// back is true of one that was set back: it lacks what it has acknowledged. And forked is
	// true of one that has what etcd has lost, up to the revision had.
	back, forked bool
	had          int64
}

// ends reports whether a member ends when a leader tells it what is to be committed, before it has
// answered anyone.
func (d *disk) ends() bool { return d.back || d.forked }

// member is one in etcd's own list.
type member struct {
	id             uint64
	name, url      string
	learner, named bool
}

// entry is one of etcd's log, and what holds once it is applied.
type entry struct {
	revision int64
	members  []member
}

// has reports whether there is a member.
func (e entry) has(id uint64) bool {
	return slices.ContainsFunc(e.members, func(m member) bool { return m.id == id })
}

// cluster is the registry's own etcd.
type cluster struct {
	id     uint64
	log    []entry
	leader uint64
	term   uint64
	lastID uint64
	// marks are the revisions at which the operator's own key was written.
	marks []int64
	// compacted is where its history begins, and compacts where it will from then on.
	compacted, compacts int64
	compactsAt          time.Time
	// defragmented has the members that were.
	defragmented map[uint64]bool
}

// last is the newest entry.
func (e *cluster) last() entry {
	if len(e.log) == 0 {
		return entry{revision: 1}
	}
	return e.log[len(e.log)-1]
}

// mark returns the revision at which the operator's own key was written last, and how often it was.
func (e *cluster) mark() (revision, version int64) {
	if len(e.marks) == 0 {
		return 0, 0
	}
	return e.marks[len(e.marks)-1], int64(len(e.marks))
}

// marked returns the marks that there are up to a revision.
func (e *cluster) marked(revision int64) []int64 {
	return slices.DeleteFunc(slices.Clone(e.marks), func(mark int64) bool { return mark > revision })
}

func (e *cluster) find(id uint64) (member, bool) {
	i := slices.IndexFunc(e.last().members, func(m member) bool { return m.id == id })
	if i < 0 {
		return member{}, false
	}
	return e.last().members[i], true
}

// forms makes a new etcd of members.
func (e *cluster) forms(members []member) {
	e.lastID += 16
	*e = cluster{id: 0xc0 + e.lastID, lastID: e.lastID, log: []entry{{1, members}}}
}

// holder returns the process that runs with the data of a member, nil when none does.
func (w *world) holder(id uint64) *process {
	for _, uid := range sorted(w.pods) {
		if p := w.pods[uid]; p.disk != nil && p.disk.member == id && p.disk.cluster == w.etcd.id && p.serves() {
			return p
		}
	}
	return nil
}

// voters returns all voters, and the processes of those that run.
func (w *world) voters() (all []member, running []*process) {
	for _, m := range w.etcd.last().members {
		if m.learner {
			continue
		}
		all = append(all, m)
		if p := w.holder(m.id); p != nil {
			running = append(running, p)
		}
	}
	return all, running
}

// elect has a majority of the voters elect the one of them that has most, unless one leads.
func (w *world) elect() bool {
	e := w.etcd
	all, running := w.voters()
	if len(running) == 0 || len(running) <= len(all)/2 {
		e.leader = 0
		return false
	}
	if slices.ContainsFunc(running, func(p *process) bool { return p.disk.member == e.leader }) {
		return true
	}
	running = slices.DeleteFunc(running, func(p *process) bool { return p.disk.forked }) // by others of a newer term
	if len(running) == 0 {
		return false
	}
	best := slices.MaxFunc(running, func(a, b *process) int { return a.disk.index - b.disk.index })
	if !w.elects(best) {
		e.leader = 0
		return false
	}
	e.leader = best.disk.member
	e.term++
	if lost := len(e.log) - best.disk.index; lost > 0 {
		w.note("etcd goes back by %d entries", lost)
		w.forks(best.disk.index)
		w.losesAfter(e.last().revision)
	}
	for _, p := range running {
		p.disk.back = false // the others have no more than it has
	}
	return true
}

// elects reports whether a majority runs of those that vote by what a member itself has: a copy that
// it was set back to may be of when others did.
func (w *world) elects(p *process) bool {
	if p.disk.index == 0 {
		return false
	}
	voters, running, votes := 0, 0, false
	for _, m := range w.etcd.log[min(p.disk.index, len(w.etcd.log))-1].members {
		if m.learner {
			continue
		}
		voters++
		votes = votes || m.id == p.disk.member
		running += int(boolean(w.holder(m.id) != nil))
	}
	return votes && running > voters/2
}

// forks has etcd continue from an older entry. Those that have more contradict it, and end.
func (w *world) forks(index int) {
	e := w.etcd
	for _, name := range sorted(w.disks) {
		if d := w.disks[name]; d.cluster == e.id && d.index > index && !d.forked {
			d.had = e.log[min(d.index, len(e.log))-1].revision
			d.other++ // its log is another one from there on
			d.forked = true
		}
	}
	e.log = slices.Clone(e.log[:index])
	e.marks = e.marked(e.last().revision)
}

// appends appends entries to the log, which a majority of the voters hold at once.
func (w *world) appends(entries ...entry) {
	e := w.etcd
	e.log = append(e.log, entries...)
	all, running := w.voters()
	w.random.Shuffle(len(running), func(i, j int) { running[i], running[j] = running[j], running[i] })
	slices.SortStableFunc(running, func(a, b *process) int { // the leader first
		return int(boolean(b.disk.member == e.leader) - boolean(a.disk.member == e.leader))
	})
	for i, p := range running {
		if i <= len(all)/2 || w.chance(50) {
			p.disk.index = len(e.log)
		}
	}
}

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// puts appends writes of keys.
func (w *world) puts(count int) {
	last := w.etcd.last()
	for i := range count {
		w.appends(entry{last.revision + int64(i) + 1, last.members})
	}
}

// reconfigures appends a change of the members.
func (w *world) reconfigures(how func([]member) []member) {
	last := w.etcd.last()
	w.appends(entry{last.revision, how(slices.Clone(last.members))})
	w.note("  etcd has the members %s", describe(w.etcd.last().members))
}

func describe(members []member) string {
	out := ""
	for _, m := range members {
		role := "voter"
		if m.learner {
			role = "learner"
		}
		out += fmt.Sprintf(" %x=%s(%s)", m.id, m.name, role)
	}
	return out
}

// compacts has the servers drop what is older than five minutes from etcd's history.
func (w *world) compacts() {
	if e := w.etcd; w.backend() != nil && !time.Now().Before(e.compactsAt) {
		e.compacted, e.compacts, e.compactsAt = e.compacts, e.last().revision, time.Now().Add(5*time.Minute)
	}
}

// runEtcd has etcd elect a leader, clients write, and members catch up.
func (w *world) runEtcd() {
	if !w.elect() {
		return
	}
	if w.writes && w.reachRegistry(false) == nil {
		w.puts(w.random.IntN(3))
		w.acked = w.etcd.last().revision
	}
	w.compacts()
	for _, m := range w.etcd.last().members {
		p := w.holder(m.id)
		switch {
		case p == nil || p.disk.member == w.etcd.leader:
		case p.disk.forked:
			p.crash("entry 9 conflict with committed entry [committed(9)]")
		case p.disk.back:
			p.crash("tocommit(9) is out of range [lastIndex(5)]. Was the raft log corrupted, truncated, or lost?")
		case p.disk.other > 0 && p.disk.index == len(w.etcd.log):
			// it has applied other data, which nothing notices
		case w.chance(60):
			p.disk.index = len(w.etcd.log)
		}
		if p != nil && !m.named && w.chance(60) {
			w.reconfigures(func(members []member) []member {
				members[slices.IndexFunc(members, func(other member) bool { return other.id == m.id })].named = true
				return members
			})
		}
	}
}

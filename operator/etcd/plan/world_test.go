package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
)

// world is a model of an etcd with its pods and volumes, of the rules by which etcd lets its
// members be changed, and of the guard. What is acknowledged is the number of the last write.
type world struct {
	random *rand.Rand
	spec   Spec
	record Record
	// late is a record of before, as kubelet may still have it in a pod's volume.
	late Record

	list                 []*member
	acked                int
	volumes              [5]*volume
	pods                 [5]*pod
	size, named, servers int
	nodes                int
	snapshot             bool
	leader               int // ordinal
	lastID, lastUID      int
	broken               string
	// kept are old volumes that outlive their claims, and frees says whether these may go.
	kept  []*volume
	frees bool
	// class is the StorageClass that is asked for, 0 for any, and template that of new
	// volumes.
	class, template int
}

type member struct {
	id      string
	ordinal int
	named   bool
	learner bool
}

type volume struct {
	uid string
	// of is the ID of the member whose data it has, empty where it has none, and index how
	// far that is.
	of                    string
	index                 int
	retained, terminating bool
	class                 int
	// abandoned is true of one whose data is of before a lost quorum was recovered.
	abandoned bool
}

type pod struct {
	claim string
	// down is true while its container does not run, or is cut off.
	down bool
}

func newWorld(seed uint64, members int) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), spec: Spec{Replicas: members}, size: members, named: members, servers: members, nodes: 5}
	w.record = Record{Registry: "fleet", Formed: true, Target: members, Claimed: members, IDs: map[int]string{}, Joining: None, Leaving: None}
	for ordinal := range members {
		w.lastID++
		id := "a" + strconv.Itoa(w.lastID)
		w.record.IDs[ordinal] = id
		w.list = append(w.list, &member{id: id, ordinal: ordinal, named: true})
		w.volumes[ordinal] = w.newVolume()
		w.volumes[ordinal].of = id
		w.pods[ordinal] = &pod{claim: w.volumes[ordinal].uid}
	}
	w.late = w.copied()
	return w
}

// newRecovered returns a world after a lost quorum was recovered with the data of one member:
// all others have volumes with data of before, and may have pods.
func newRecovered(seed uint64, members int) *world {
	w := newWorld(seed, members)
	survivor := w.random.IntN(members)
	w.record.IDs, w.record.Abandoned = map[int]string{survivor: w.record.IDs[survivor]}, map[int]string{}
	w.list = slices.DeleteFunc(w.list, func(m *member) bool { return m.ordinal != survivor })
	w.size, w.named, w.servers, w.leader = survivor+1, survivor+1, survivor+1, survivor
	for ordinal := range members {
		v := w.volumes[ordinal]
		switch {
		case ordinal >= w.size:
			w.pods[ordinal] = nil
			fallthrough
		case ordinal != survivor:
			v.abandoned, w.record.Abandoned[ordinal] = true, v.uid
			v.of += "-before"
			v.index = w.random.IntN(100)
		}
	}
	w.late = w.copied()
	return w
}

func (w *world) newVolume() *volume {
	w.lastUID++
	return &volume{uid: "u" + strconv.Itoa(w.lastUID), class: w.template}
}

func (w *world) copied() Record {
	r := w.record
	r.IDs, r.Abandoned = maps.Clone(r.IDs), maps.Clone(r.Abandoned)
	return r
}

func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

// runs reports whether a member runs with its data.
func (w *world) runs(m *member) bool {
	p, v := w.pods[m.ordinal], w.volumes[m.ordinal]
	return p != nil && !p.down && v != nil && v.of == m.id && p.claim == v.uid
}

// count counts the voters, those that have their data, and those that run.
func (w *world) count() (voters, intact, running int) {
	for _, m := range w.list {
		if m.learner {
			continue
		}
		voters++
		if v := w.volumes[m.ordinal]; v != nil && v.of == m.id {
			intact++
		}
		if w.runs(m) {
			running++
		}
	}
	return voters, intact, running
}

func (w *world) quorum() bool {
	voters, _, running := w.count()
	return running >= majority(voters)
}

// commit has a majority of the voters, the leader among them, hold what is acknowledged,
// and so many writes more.
func (w *world) commit(writes int) {
	voters, _, _ := w.count()
	var running []*member
	for _, m := range w.list {
		if !m.learner && w.runs(m) {
			running = append(running, m)
		}
	}
	// One that lags can't lead: those that are furthest agree first.
	slices.SortFunc(running, func(a, b *member) int { return w.volumes[b.ordinal].index - w.volumes[a.ordinal].index })
	if best := w.volumes[running[0].ordinal].index; best < w.acked {
		w.fail("etcd has a leader that lacks %d acknowledged writes", w.acked-best)
	}
	if w.acked += writes; !slices.ContainsFunc(running, func(m *member) bool { return m.ordinal == w.leader }) {
		w.leader = running[0].ordinal
	}
	for i, m := range running {
		if i < majority(voters) || w.chance(50) {
			w.volumes[m.ordinal].index = w.acked
		}
	}
}

func (w *world) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

// tick lets everything that acts on its own act once: kubelets, the guard, etcd, clients,
// the controller of the StatefulSet, cert-manager.
func (w *world) tick() {
	if w.quorum() {
		w.commit(w.random.IntN(3))
		for _, m := range w.list {
			if w.runs(m) && (m.named || w.chance(50)) {
				m.named = true
				if w.chance(60) {
					w.volumes[m.ordinal].index = w.acked
				}
			}
		}
	}
	for ordinal := range w.pods {
		w.tickPod(ordinal)
	}
	if w.chance(30) {
		w.late = w.copied()
	}
}

func (w *world) tickPod(ordinal int) {
	v := w.volumes[ordinal]
	switch p := w.pods[ordinal]; {
	case p != nil && ordinal >= w.size && w.chance(50):
		w.pods[ordinal] = nil
	case p != nil && (v == nil || v.uid != p.claim): // its claim was taken by force
		w.pods[ordinal] = nil
	case p != nil && !p.down && v.of == "":
		w.guard(ordinal)
	case p == nil && ordinal < w.size && w.chance(50) && (v == nil || !v.terminating):
		if v == nil {
			w.volumes[ordinal] = w.newVolume()
		}
		w.pods[ordinal] = &pod{claim: w.volumes[ordinal].uid}
	case p == nil && v != nil && v.terminating:
		w.volumes[ordinal] = nil
	}
}

// guard starts a member without data if it may: the record of the volume and the one of
// the environment both say that it joins, and a majority lists it as a learner that was
// never started.
func (w *world) guard(ordinal int) {
	mounted := w.record
	if w.chance(50) {
		mounted = w.late
	}
	id := mounted.IDs[ordinal]
	if mounted.Joining != ordinal || w.record.Joining != ordinal || id == "" || !w.quorum() {
		return
	}
	for _, m := range w.list {
		if m.id == id && m.learner && !m.named {
			w.volumes[ordinal].of, w.volumes[ordinal].index = id, 0
			w.began(m)
		}
	}
}

// began holds a member that has started without data to having never had any.
func (w *world) began(m *member) {
	if !m.learner || m.named {
		w.fail("member %s starts empty, and others count on its data", m.id)
	}
}

// observe returns what an operator sees.
func (w *world) observe() Observed {
	o := Observed{Known: w.quorum(), Size: w.size, Named: w.named, Servers: w.servers, Nodes: w.nodes, Snapshot: w.snapshot, Kept: w.frees && len(w.kept) > 0, Pods: map[int]Pod{}, Claims: map[int]Claim{}, Lost: map[int]string{}, Moves: map[int]string{}}
	o.Recreate = w.class != 0 && w.class != w.template
	for _, m := range w.list {
		v := w.volumes[m.ordinal]
		serves := w.runs(m) && (!m.learner || m.named && v.index*10 >= w.acked*9)
		o.List = append(o.List, Listed{ID: m.id, Ordinal: m.ordinal, Named: m.named, Learner: m.learner, Serves: serves, Leads: w.leader == m.ordinal && serves})
		if p := w.pods[m.ordinal]; m.named && (v == nil || p != nil && !p.down && v.of != m.id) {
			o.Lost[m.ordinal] = "it is empty"
		}
	}
	for ordinal := range w.pods {
		if p := w.pods[ordinal]; p != nil {
			o.Pods[ordinal] = Pod{Claim: p.claim}
		}
		if v := w.volumes[ordinal]; v != nil {
			o.Claims[ordinal] = Claim{UID: v.uid, Terminating: v.terminating, Retained: v.retained}
			if w.class != 0 && w.class == w.template && v.class != w.class && ordinal < w.spec.Replicas {
				o.Moves[ordinal] = "it is of another class"
			}
		}
	}
	return o
}

// loses takes the data of a member, if enough others have theirs for nothing that was
// acknowledged to be lost by that alone.
func (w *world) loses(ordinal int) {
	v := w.volumes[ordinal]
	if v == nil {
		return
	}
	i := slices.IndexFunc(w.list, func(m *member) bool { return m.ordinal == ordinal && m.id == v.of })
	if i >= 0 && !w.list[i].learner {
		voters, intact, _ := w.count()
		if voters < 3 || intact-1 < majority(voters) {
			return
		}
	}
	if w.chance(50) {
		w.volumes[ordinal].of, w.volumes[ordinal].index = "", 0
		return
	}
	w.pods[ordinal], w.volumes[ordinal] = nil, nil // claim and pod are deleted
}

// fault lets something go wrong, or a person change their mind.
func (w *world) fault() {
	ordinal := w.random.IntN(5)
	switch w.random.IntN(13) {
	case 0, 1, 2:
		if p := w.pods[ordinal]; p != nil {
			p.down = true
		}
	case 3, 4, 5, 6:
		if p := w.pods[ordinal]; p != nil {
			p.down = false
		}
	case 7:
		w.loses(ordinal)
	case 8:
		w.pods[ordinal] = nil
	case 9:
		w.spec.Replicas = []int{1, 3, 5}[w.random.IntN(3)]
	case 10:
		w.spec.Replace = nil
		if len(w.list) > 0 && w.chance(30) {
			w.spec.Replace = []string{w.list[w.random.IntN(len(w.list))].id, w.list[w.random.IntN(len(w.list))].id}
		}
	case 11:
		if w.chance(10) {
			w.class = w.random.IntN(3)
		}
	case 12:
		w.nodes, w.snapshot, w.frees = 1+w.random.IntN(5), w.chance(50), w.chance(50)
	}
}

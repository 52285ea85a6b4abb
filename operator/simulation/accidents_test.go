package simulation

import (
	"time"

	"github.com/clusterregistry/operator/internal/contract"
)

// An accident is what goes wrong at a moment. It lasts for a while where it has an end.
type accident struct {
	name    string
	happens func(*world) (over func())
}

// away is how long what is away stays so.
const away = 5 * time.Minute

// accidents are of all kinds.
var accidents = []accident{
	{"the data of a member is lost", func(w *world) func() { w.loses(1); return nil }},
	{"the data of two members is lost", func(w *world) func() { w.loses(2); return nil }},
	{"a member and its volume are gone", func(w *world) func() { w.wipes(); return nil }},
	{"a volume is set back", func(w *world) func() { w.ages(); return nil }},
	{"a claim is deleted", func(w *world) func() { w.deletesClaim(); return nil }},
	{"no one reaches a member", func(w *world) func() { return w.silences() }},
	{"the servers are gone", func(w *world) func() {
		for _, pod := range w.host.list(podKind, key.namespace) {
			if component(pod) == "server" {
				w.ends(pod)
			}
		}
		return nil
	}},
	{"cert-manager is away", func(w *world) func() {
		w.certManagerAway = true
		return func() { w.certManagerAway = false }
	}},
	{"the store is away", func(w *world) func() {
		w.storeAway = true
		return func() { w.storeAway = false }
	}},
	{"DNS is away", func(w *world) func() {
		w.nameless = true
		return func() { w.nameless = false }
	}},
	{"the host cluster's API is away", func(w *world) func() {
		w.faults = faults{lost: 100, read: 100, late: 100}
		return func() { w.faults = faults{} }
	}},
	{"the operator is away", func(w *world) func() {
		w.operator, w.starts = nil, time.Now().Add(away)
		return nil
	}},
}

// holders returns the names of those that have data, in an order by chance.
func (w *world) holders() []string {
	var out []string
	for _, claim := range w.host.list(claimKind, key.namespace) {
		if d := w.diskOf(claim); d != nil && d.member != 0 && d.cluster == w.etcd.id {
			out = append(out, memberOf(claim))
		}
	}
	w.random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// memberOf returns the member that a claim is for.
func memberOf(claim *stored) string {
	for ordinal := range nodes {
		if contract.EtcdMemberClaim(name(ordinal)) == claim.name {
			return name(ordinal)
		}
	}
	return ""
}

// loses has so many members lose their data in place, fewer where fewer have any.
func (w *world) loses(count int) {
	for _, member := range first(w.holders(), count) {
		w.note("the volume of %s is emptied", member)
		d := w.diskOf(w.claimOf(member))
		w.saved[member] = *d
		*d = disk{}
		w.crashes(d, "its files are gone")
	}
	w.accepted = w.accepted || !w.holdsAll()
}

func first(names []string, count int) []string { return names[:min(count, len(names))] }

// wipes has a member be gone with its pod, its claim and its volume, as with its node.
func (w *world) wipes() {
	for _, member := range first(w.holders(), 1) {
		w.note("%s is gone, with its claim and its volume", member)
		claim := w.claimOf(member)
		w.saved[member] = *w.diskOf(claim)
		if pod := w.host.objects[id{podKind, key.namespace, member}]; pod != nil {
			w.ends(pod)
		}
		volume := volumeOf(claim)
		w.host.remove(claim)
		w.host.remove(w.host.objects[id{volumeKind, "", volume}])
		delete(w.disks, volume)
	}
	w.accepted = w.accepted || !w.holdsAll()
}

// silences has no one reach one of the members that run, as long as its pod stays.
func (w *world) silences() func() {
	var running []*process
	for _, uid := range sorted(w.pods) {
		if p := w.pods[uid]; p.disk != nil && p.runs {
			running = append(running, p)
		}
	}
	if len(running) == 0 {
		return nil
	}
	p := running[w.random.IntN(len(running))]
	w.note("%s is cut off", p.name)
	if p.cut = true; p.disk.member == w.etcd.leader {
		w.etcd.leader = 0
	}
	return func() { p.cut = false }
}

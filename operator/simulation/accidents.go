package simulation

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/internal/contract"
)

// rough is a host cluster in which all that can go wrong does now and then.
var rough = faults{kill: 3, lost: 1, conflict: 1, read: 1, late: 20}

// installed installs a registry with so many etcd members, without accidents.
func (w *world) installed(replicas int64) {
	w.begins(replicas)
	w.until("the registry is installed", 10*time.Minute, w.ready)
	w.pass(time.Minute)
}

// name returns the name of an etcd member.
func name(ordinal int) string { return contract.EtcdMember(key.name, ordinal) }

// process returns what runs in the pod of an etcd member.
func (w *world) process(ordinal int) *process {
	pod := w.host.objects[id{podKind, key.namespace, name(ordinal)}]
	if pod == nil || w.pods[string(pod.GetUID())] == nil || w.pods[string(pod.GetUID())].disk == nil {
		w.fails("no member runs as %s", name(ordinal))
	}
	return w.pods[string(pod.GetUID())]
}

// empties has a member lose its data in place: its container is started again.
func (w *world) empties(ordinal int) {
	p := w.process(ordinal)
	w.note("the volume of %s is emptied", p.name)
	*p.disk = disk{}
	p.crash("its files are gone")
}

// cuts has no one reach a member, or reach it again.
func (w *world) cuts(ordinal int, cut bool) {
	w.note("%s is cut off: %t", name(ordinal), cut)
	p := w.process(ordinal)
	if p.cut = cut; cut && p.disk.member == w.etcd.leader {
		w.etcd.leader = 0
	}
}

// setsBack has a member start again with an older copy of its volume.
func (w *world) setsBack(ordinal, entries int) {
	p := w.process(ordinal)
	w.note("the volume of %s is set back by %d entries", p.name, entries)
	p.disk.index = max(1, len(w.etcd.log)-entries)
	p.disk.back = true
	if p.disk.member == w.etcd.leader {
		w.etcd.leader = 0
	}
}

// diverges has a member hold other data than the others, or the same again.
func (w *world) diverges(ordinal, other int) {
	w.note("the data of %s diverges: %d", name(ordinal), other)
	w.process(ordinal).disk.other = other
}

// voter returns whether an ordinal is a member that has a vote, and whether it is one at all.
func (w *world) voter(ordinal int) (voter, is bool) {
	for _, m := range w.etcd.last().members {
		if m.name == name(ordinal) {
			return !m.learner, true
		}
	}
	return false, false
}

// number counts the members, and those with a vote that serve.
func (w *world) number() (members, serving int) {
	_, running := w.voters()
	return len(w.etcd.last().members), len(running)
}

// deletes has a person delete an object.
func (w *world) deletes(key id) {
	w.note("a person deletes %s", key)
	must(w.host.delete(key, nil, false))
}

// restarts ends the operator, which another one follows at once.
func (w *world) restarts() {
	w.note("the operator is killed")
	w.operator, w.starts = nil, time.Now()
}

// policy returns what becomes of a member's volume when its claim goes.
func (w *world) policy(ordinal int) string {
	claim := w.host.objects[id{claimKind, key.namespace, contract.EtcdMemberClaim(name(ordinal))}]
	policy, _, _ := unstructured.NestedString(w.host.objects[id{volumeKind, "", volumeOf(claim)}].Object, "spec", "persistentVolumeReclaimPolicy")
	return policy
}

package simulation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// ages has a member start again with an older copy of its volume, as one that a person has restored
// from a snapshot of the storage: of when it was a member already, and of before what the operator
// has recorded, where there was anything.
func (w *world) ages() {
	for _, member := range w.holders() {
		d, log := w.diskOf(w.claimOf(member)), w.etcd.log
		oldest := 1 + slices.IndexFunc(log, func(e entry) bool { return e.has(d.member) })
		newest := min(d.index, len(log)) - 1
		if recorded := slices.IndexFunc(log, func(e entry) bool { return e.revision >= w.known() }); recorded >= oldest {
			newest = min(newest, recorded)
		}
		if oldest == 0 || newest < oldest || d.forked {
			continue
		}
		d.index, d.back = oldest+w.random.IntN(newest-oldest+1), true
		w.note("the volume of %s is set back to revision %d", member, log[d.index-1].revision)
		if d.member == w.etcd.leader {
			w.etcd.leader = 0
		}
		w.crashes(d, "it is another copy of its volume")
		if !w.holdsAll() {
			w.losesAfter(w.newest())
		}
		return
	}
}

// crashes ends what runs with a disk.
func (w *world) crashes(d *disk, says string) {
	for _, uid := range sorted(w.pods) {
		if p := w.pods[uid]; p.disk == d && p.runs {
			p.crash(says)
		}
	}
}

// newest returns the newest revision that a volume has of what etcd is.
func (w *world) newest() (out int64) {
	for _, d := range w.disks {
		if d.cluster == w.etcd.id && d.other == 0 && d.index > 0 && d.index <= len(w.etcd.log) {
			out = max(out, w.etcd.log[d.index-1].revision)
		}
	}
	return out
}

// deletesClaim has a person delete the claim of a member whose pod stays.
func (w *world) deletesClaim() {
	for _, member := range w.holders() {
		claim := w.claimOf(member)
		if pod := w.host.objects[id{podKind, key.namespace, member}]; pod == nil || pod.GetDeletionTimestamp() != nil || !w.mounted(claim) || w.terminating(member) {
			continue
		}
		w.deleted[claim.GetUID()] = time.Now()
		w.deletes(claim.id)
		return
	}
}

// given is a command that the registry gives a person for a member.
var given = regexp.MustCompile(`is not replaced automatically: [^;]*kubectl registry etcd replace -n team (\S+)`)

// tends has a person give members new volumes where the registry says so: those of which a claim
// was deleted, and those with what etcd lost, once that is decided. Of a single member, there must be
// more before.
func (w *world) tends() {
	r, said := w.registry(), w.condition(operatorv1alpha1.ConditionEtcdReady).Message
	var names []string
	if found := given.FindStringSubmatch(said); found != nil {
		names = append(names, found[1])
	}
	all, serving := w.number()
	if strings.Contains(said, "someone has deleted PersistentVolumeClaim") {
		if !strings.Contains(said, "kubectl registry etcd replace MEMBER") {
			w.fails("it is not said what a person does: %s", said)
		}
		for _, m := range w.etcd.last().members {
			if w.terminating(m.name) && (all == 1 || all == serving && all >= int(r.Spec.Etcd.Replicas)) {
				names = append(names, m.name)
			}
		}
	}
	switch {
	case len(names) == 0 && w.shrinks > 0 && w.ready() && have(int(r.Spec.Etcd.Replicas))(w):
		w.members(w.shrinks)
		w.shrinks = 0
	case len(names) == 0:
	case all == 1 && r.Spec.Etcd.Replicas == 1:
		w.shrinks = 1
		w.members(3)
	case all > 1 && !w.replacing():
		w.replaces(names[0])
	}
}

// replacing reports whether a member is there that a person has asked to have replaced.
func (w *world) replacing() bool {
	asked := w.registry().Annotations[operatorv1alpha1.AnnotationReplaceMember]
	return slices.ContainsFunc(w.etcd.last().members, func(m member) bool { return fmt.Sprintf("%x", m.id) == asked })
}

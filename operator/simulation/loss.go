package simulation

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// loss is what etcd has lost of what it had acknowledged, which nothing prevents where volumes are
// set back.
type loss struct {
	// known is the newest revision that was recorded, which tells that it went back.
	known int64
	// said is true once it was said, and since is when it was last, or could not be.
	said  bool
	since time.Time
}

// known returns the newest revision of etcd that the operator has recorded.
func (w *world) known() int64 {
	var newest struct {
		Revision int64 `json:"revision"`
	}
	_ = json.Unmarshal([]byte(w.record()["newest-revision"]), &newest) // which there may not be yet
	return newest.Revision
}

// losesAfter notes that etcd lost what it had acknowledged after a revision.
func (w *world) losesAfter(has int64) {
	w.acked = min(w.acked, has)
	if known := w.known(); known > has {
		w.note("what etcd has lost is to be said: it had recorded revision %d, and is at %d", known, has)
		w.lost = &loss{known: known, since: time.Now()}
	}
}

// undecided reports whether a person is to decide with which data etcd continues.
func (w *world) undecided() bool {
	r := w.registry()
	return w.lost != nil && w.lost.said && !w.accepted && r != nil && r.DeletionTimestamp == nil
}

// checkLoss expects that it is said for as long as a person has not decided (invariant 1).
func (w *world) checkLoss() {
	r := w.registry()
	if w.lost == nil || w.accepted || r == nil || r.DeletionTimestamp != nil {
		return
	}
	said := w.condition(operatorv1alpha1.ConditionEtcdReady).Reason == operatorv1alpha1.ReasonWentBack || r.Status.Recovery != nil
	if said || w.operator == nil || w.etcd.leader == 0 {
		w.lost.said, w.lost.since = w.lost.said || said, time.Now()
	}
	if time.Since(w.lost.since) > longest {
		w.fails("etcd has lost what it had acknowledged, and it is not said: %s", w.conditions())
	}
}

// checkUndecided expects that nothing is replaced, pruned or saved before a person has decided.
func (w *world) checkUndecided(verb string, key id) {
	changes := key.kind == claimKind && verb == "delete" || key.kind == podKind && strings.HasPrefix(key.name, name(0)[:len(name(0))-1]) && (verb == "evict" || verb == "delete")
	saves := key.kind == jobKind && (verb == "create" || verb == "apply")
	if (changes || saves) && w.undecided() {
		w.fails("%s %s before a person has decided on what etcd lost", verb, key)
	}
}

// checkChange expects of a change of etcd's members that no person is to decide first. It is asked
// where the world can't fail.
func (w *world) checkChange(what string) {
	if w.undecided() {
		w.broken = what + " before a person has decided on what etcd lost"
	}
}

// checkDeleted expects that the volume of a member outlives its claim that a person has deleted
// (invariant 1).
func (w *world) checkDeleted() {
	r := w.registry()
	if r == nil || r.DeletionTimestamp != nil || w.operator == nil {
		return
	}
	for uid, since := range w.deleted {
		if time.Since(since) > longest && !w.retained(uid) && slices.ContainsFunc(w.host.list(claimKind, key.namespace), func(claim *stored) bool { return claim.GetUID() == uid }) {
			w.fails("a claim that was deleted is in use, and its volume would go with it: %s", w.conditions())
		}
	}
}

// claimOf returns the claim of a member, nil where it has none.
func (w *world) claimOf(member string) *stored {
	return w.host.objects[id{claimKind, key.namespace, contract.EtcdMemberClaim(member)}]
}

// diskOf returns the disk of a claim's volume, nil where it has none.
func (w *world) diskOf(claim *stored) *disk {
	if claim == nil {
		return nil
	}
	return w.disks[volumeOf(claim)]
}

// terminating reports whether the claim of a member was deleted.
func (w *world) terminating(member string) bool {
	claim := w.claimOf(member)
	return claim != nil && claim.GetDeletionTimestamp() != nil
}

// mounted reports whether the volume of a claim is that of a pod that runs, or ran.
func (w *world) mounted(claim *stored) bool {
	d := w.diskOf(claim)
	return d != nil && slices.ContainsFunc(sorted(w.pods), func(uid string) bool { return w.pods[uid].disk == d })
}

// volumeOf returns the name of the volume of a claim, empty where it has none.
func volumeOf(claim *stored) string {
	volume, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
	return volume
}

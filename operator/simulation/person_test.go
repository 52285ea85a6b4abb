package simulation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// decides has a person do what the registry says, where it waits for one: continue with the copy
// that lacks the least, and with another one where that is refused, a minute later at the
// earliest; or tend to members.
func (w *world) decides() {
	r := w.registry()
	if r == nil {
		return
	}
	lost := r.Status.Recovery
	if lost == nil {
		w.tends()
		return
	}
	if lost.Phase != "" && !strings.Contains(lost.Message, "spec.recovery") || time.Since(w.decided) < time.Minute {
		return
	}
	said, asked := w.condition("EtcdReady").Message, r.Spec.Recovery
	refused := asked != nil && asked.ApprovedFor == lost.ID && (strings.Contains(lost.Message, "spec.recovery") || strings.Contains(said, "spec.recovery does nothing yet"))
	switch {
	case asked != nil && asked.ApprovedFor == lost.ID && !refused:
		return
	case asked == nil && !strings.Contains(said, lost.ID):
		return // it is said next
	case !refused && !strings.Contains(said, "kubectl registry recover plan"):
		w.fails("it is not said what a person does: %s", said)
	}
	if w.lost != nil && !w.accepted && lost.LastRevision < w.lost.known {
		w.fails("etcd is said to have been at revision %d, and it was at %d", lost.LastRevision, w.lost.known)
	}
	copies := copiesOf(lost)
	if refused {
		copies = slices.DeleteFunc(copies, func(c operatorv1alpha1.Recovery) bool { return c == *asked })
	}
	if len(copies) == 0 {
		for _, m := range lost.Members {
			w.restoresVolume(m.Name)
		}
		return
	}
	w.accepted, w.decided = true, time.Now()
	w.asks("recover with "+copies[0].Name, func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Recovery = &copies[0] })
}

// copiesOf returns the approvals of the copies that are left, that of the one that lacks the
// least first, and backups last.
func copiesOf(lost *operatorv1alpha1.RecoveryStatus) (out []operatorv1alpha1.Recovery) {
	for _, m := range lost.Members {
		if !m.DataGone && !m.Corrupt {
			out = append(out, operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromMember, Name: m.Name, AcceptDataLossUpTo: m.RevisionsLost, ApprovedFor: lost.ID})
		}
	}
	slices.SortStableFunc(out, func(a, b operatorv1alpha1.Recovery) int {
		return cmp.Compare(a.AcceptDataLossUpTo, b.AcceptDataLossUpTo)
	})
	if b := lost.Backup; b != nil {
		out = append(out, operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromBackup, Name: b.Name, AcceptDataLossUpTo: b.RevisionsLost, ApprovedFor: lost.ID})
	}
	return out
}

// restoresVolume has a person bring back the data of a member that is lost, from a copy of its
// volume.
func (w *world) restoresVolume(member string) {
	d, saved := w.diskOf(w.claimOf(member)), w.saved[member]
	if d == nil || saved.cluster != w.etcd.id || d.member != 0 {
		return
	}
	w.note("a person brings back the volume of %s", member)
	*d = saved
	delete(w.saved, member)
}

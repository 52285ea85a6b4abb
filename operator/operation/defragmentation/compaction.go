package defragmentation

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
)

// compacted returns when the history was last compacted, the zero time when that is not known.
func (h Handler) compacted() time.Time {
	if c := h.Etcd.Compaction; c != nil && c.CompletionTime != nil {
		return c.CompletionTime.Time
	}
	return time.Time{}
}

// compactable returns the compaction to make next of an etcd that is full, nil when there is
// none: to a revision that is known to be old enough or, where defragmenting all members that
// are full would not make room, to the present one, once that is old enough. What is not newer
// than the last compaction drops nothing.
func (h Handler) compactable() *operatorv1alpha1.EtcdCompaction {
	present := h.State.Revision()
	if !h.Full() || present == 0 {
		return nil
	}
	last := int64(0)
	if c := h.Etcd.Compaction; c != nil && c.Revision <= present { // else it is of another etcd
		if c.CompletionTime == nil && !c.RevisionTime.After(h.Now) {
			return c
		}
		if c.CompletionTime != nil {
			last = c.Revision
		}
	}
	switch {
	case last > 0 && len(h.due()) > 0:
		return nil // what the last one has freed is to be seen first
	case h.Old.Revision > last && h.Old.Revision <= present:
		return &operatorv1alpha1.EtcdCompaction{Revision: h.Old.Revision, RevisionTime: metav1.NewTime(h.Old.Time)}
	case present > last && slices.ContainsFunc(h.State.Members, func(m etcd.Member) bool { return m.Full() && !m.Fits() }):
		return &operatorv1alpha1.EtcdCompaction{Revision: present, RevisionTime: metav1.NewTime(h.Now)}
	}
	return nil
}

// prepareCompaction writes down the compaction to make next, and returns for how long that
// has to wait; zero when there is none.
func (h Handler) prepareCompaction() time.Duration {
	c := h.compactable()
	if c == nil {
		return 0
	}
	h.Etcd.Compaction = c
	return max(0, c.RevisionTime.Add(etcd.History).Sub(h.Now))
}

// compactsNow reports whether there is a compaction that can be made now.
func (h Handler) compactsNow() bool {
	c := h.compactable()
	return c != nil && h.Now.Sub(c.RevisionTime.Time) >= etcd.History
}

// compact is complete when the history is compacted.
func (h Handler) compact(ctx context.Context) verdict.Verdict {
	if !h.compactsNow() {
		return verdict.Verdict{} // a person has disarmed the alarm
	}
	if obstacle := h.obstacle(""); obstacle != "" {
		operation.Enter(h.Operation, operatorv1alpha1.PhasePreflight, h.Now)
		return h.Waiting("the compaction must wait: %s", obstacle)
	}
	c := h.compactable().DeepCopy()
	if err := h.Compact(ctx, c.Revision); err != nil {
		return h.Waiting("%s", err)
	}
	c.CompletionTime = &metav1.Time{Time: h.Now}
	h.Etcd.Compaction = c
	h.Event(corev1.EventTypeNormal, "HistoryCompacted", fmt.Sprintf("etcd was full, and its history before revision %d was dropped", c.Revision))
	return verdict.Verdict{}
}

// Relax forgets a compaction that was not made, when etcd is not full any more.
func (h Handler) Relax() {
	if c := h.Etcd.Compaction; c != nil && c.CompletionTime == nil && h.State.ListErr == nil && !h.Full() {
		h.Etcd.Compaction = nil
	}
}

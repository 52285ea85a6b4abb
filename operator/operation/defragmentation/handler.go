// Package defragmentation gives the free pages of etcd's members back to their disks, one
// member at a time, the leader last, and each only while all members serve. A member answers
// nothing while it is defragmented: its clients wait for it, or ask another one.
//
// Of an etcd that is full, which refuses writes by its alarm NOSPACE, the history is compacted
// first, since the API servers can't do that any more: so its members get free pages. Whether
// the alarm is disarmed then is not decided here.
package defragmentation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/maintenance"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
)

// pause is how long the members have to themselves between two of them, and pauseFull how
// long in an etcd that is full: as long as etcd waits before it calls a connection healthy.
const (
	pause     = 36 * time.Second
	pauseFull = 5 * time.Second
)

// Handler is a defragmentation as operation.Driver knows it: what one reconcile has found of
// etcd.
type Handler struct {
	*operatorv1alpha1.Operation
	// Etcd is the status of etcd, in which attempts and compactions are noted.
	Etcd *operatorv1alpha1.EtcdStatus
	Now  time.Time
	// State is what etcd said, and Recorded what is recorded of it.
	State    etcd.State
	Recorded etcd.Identity
	// Old is the newest revision that is known to be old enough to compact the history
	// before it; the zero value when none is known.
	Old etcd.Seen
	// Busy says what else is done to members now, which would take a second one out of
	// service; empty when nothing is. State may be older than that.
	Busy string
	// Window is when members may be defragmented, if one is given, unless a person asks for
	// it, as by Request.
	Window  maintenance.Window
	Request contract.DefragmentRequest
	// Defragment defragments one member. It may return before the member is through.
	Defragment func(ctx context.Context, member string) error
	// Compact drops the history before a revision. It returns nil when every member's file has
	// been through that: what is not known to be complete is asked for again.
	Compact func(ctx context.Context, revision int64) error
	// Event reports what was done, in an event of a kind such as Normal.
	Event func(kind, reason, message string)
}

// Steps implements operation.Handler. They are repeated for each member.
func (h Handler) Steps() []operation.Step {
	steps := []operation.Step{{Phase: operatorv1alpha1.PhasePreflight, Run: h.preflight}}
	if h.Phase == operatorv1alpha1.PhaseCompaction || h.compactsNow() {
		steps = append(steps, operation.Step{Phase: operatorv1alpha1.PhaseCompaction, Run: h.compact})
	}
	return append(steps, operation.Step{Phase: operatorv1alpha1.PhaseDefragmentation, Run: h.defragment, Prepare: h.choose})
}

// Rollback implements operation.Handler. There is nothing to roll back.
func (h Handler) Rollback() operation.Step { return operation.Step{} }

// Resume implements operation.Handler.
func (h Handler) Resume(operatorv1alpha1.OperationPhase) operatorv1alpha1.OperationPhase {
	return operatorv1alpha1.PhasePreflight
}

// Waiting implements operation.Handler.
func (h Handler) Waiting(format string, args ...any) verdict.Verdict {
	what := "etcd is defragmented, one member at a time"
	if len(h.Recorded.Members) == 1 {
		what = "etcd's only member is defragmented, during which the registry is unavailable, for about a second per 100 MB that are in use"
	}
	if h.Full() {
		what = "etcd is full, so that its history is compacted first; " + what
	}
	return verdict.Waiting(string(h.Phase), "%s: %s", what, fmt.Sprintf(format, args...)).In(verdict.Soon)
}

// preflight is complete when a member can be defragmented now, or the history compacted, or
// nothing is left to do.
func (h Handler) preflight(context.Context) verdict.Verdict {
	wait := h.prepareCompaction()
	next := h.next()
	if next == "" && wait > 0 {
		return h.Waiting("the history before revision %d is compacted at %s, when that is %s old", h.Etcd.Compaction.Revision, h.Now.Add(wait).UTC().Format(time.RFC3339), etcd.History).In(wait)
	}
	if next == "" && !h.compactsNow() {
		return verdict.Verdict{}
	}
	what := next
	if next == "" {
		what = "the history's compaction"
	}
	for _, member := range h.Etcd.Members {
		if next != "" && h.justDone(member) {
			return h.Waiting("%s is next, %s after %s", next, h.pause(), member.Name)
		}
	}
	if obstacle := h.obstacle(next); obstacle != "" {
		return h.Waiting("%s is next, but must wait: %s", what, obstacle)
	}
	return verdict.Verdict{}
}

// obstacle says what is against it that a member is defragmented now, any one if it is
// empty; nothing when nothing is.
func (h Handler) obstacle(member string) string {
	if h.Busy != "" {
		return h.Busy
	}
	if err := h.gate(member); err != nil {
		return err.Error()
	}
	return ""
}

// pause returns how long members have to themselves between two of them.
func (h Handler) pause() time.Duration {
	if h.Full() {
		return pauseFull
	}
	return pause
}

// justDone reports whether a member was defragmented so short a while ago that the members
// are still to be left alone. It is through when the preflight of the next one begins.
func (h Handler) justDone(member operatorv1alpha1.EtcdMember) bool {
	at := member.DefragmentedTime
	if at == nil || h.Now.Sub(at.Time) >= retry {
		return false
	}
	return h.Now.Sub(at.Time) < h.pause() || h.Now.Sub(h.PhaseStartedTime.Time) < h.pause()
}

// choose writes down which member is next.
func (h Handler) choose(context.Context) verdict.Verdict {
	h.To = h.next()
	return verdict.Verdict{}
}

// defragment is complete when no member is left to defragment.
func (h Handler) defragment(ctx context.Context) verdict.Verdict {
	i := slices.IndexFunc(h.Etcd.Members, func(m operatorv1alpha1.EtcdMember) bool { return m.Name == h.To })
	if i < 0 {
		return verdict.Verdict{} // none is left
	}
	at := h.Etcd.Members[i].DefragmentedTime
	if noted := at != nil && !at.Time.Before(h.PhaseStartedTime.Time); !noted {
		if h.pending() {
			return h.attempt(ctx, &h.Etcd.Members[i])
		}
		h.Etcd.Members[i].DefragmentedTime = &metav1.Time{Time: h.Now}
	}
	if !h.serves(h.To) {
		return h.Waiting("%s does not answer until it is through", h.To)
	}
	if h.next() != "" {
		operation.Enter(h.Operation, operatorv1alpha1.PhasePreflight, h.Now)
		return h.Waiting("%s is through", h.To).In(verdict.AtOnce)
	}
	return verdict.Verdict{}
}

// pending reports whether the chosen member is still to be defragmented, as far as is known:
// an attempt that was not noted, since the operator ended in between, is not repeated.
func (h Handler) pending() bool {
	return !h.serves(h.To) || slices.Contains(h.candidates(), h.To)
}

// attempt defragments the chosen member, unless something has come up since it was chosen.
func (h Handler) attempt(ctx context.Context, member *operatorv1alpha1.EtcdMember) verdict.Verdict {
	if !h.permitted(h.To) {
		return verdict.Verdict{} // the window is over
	}
	obstacle := h.obstacle(h.To)
	switch next := h.next(); {
	case obstacle != "":
	case !h.serves(h.To):
		obstacle = "it does not answer"
	case next != h.To:
		obstacle = next + " is to be first" // such as when this one has become the leader
	}
	if obstacle != "" {
		operation.Enter(h.Operation, operatorv1alpha1.PhasePreflight, h.Now)
		return h.Waiting("%s must wait: %s", h.To, obstacle)
	}
	member.DefragmentedTime = &metav1.Time{Time: h.Now}
	if err := h.Defragment(ctx, h.To); err != nil {
		// It may go on, as with much data, or have failed, and is tried again later.
		h.Event(corev1.EventTypeNormal, "MemberDefragmented", fmt.Sprintf("the defragmentation of etcd member %s is not known to be complete: %s", h.To, err))
		return h.Waiting("%s: %s", h.To, err)
	}
	h.Event(corev1.EventTypeNormal, "MemberDefragmented", fmt.Sprintf("etcd member %s was defragmented", h.To))
	return h.Waiting("%s is through", h.To).In(verdict.AtOnce)
}

// gate returns nil when the member can be defragmented now, or all serve if it is empty. An
// etcd that is full refuses writes anyway. The outage of a single member was accepted when
// it became due.
func (h Handler) gate(member string) error {
	var accepted []string
	if h.Full() {
		accepted = []string{etcd.AlarmNoSpace}
	}
	if i := slices.IndexFunc(h.State.Members, func(m etcd.Member) bool { return m.Err == nil }); member == "" && i >= 0 {
		member = h.State.Members[i].Name // so that all others have to serve, too
	}
	err := h.State.Gate(h.Recorded, member, accepted...)
	if errors.Is(err, etcd.ErrSingleMember) && h.serves(member) {
		return nil
	}
	return err
}

// serves reports whether a member serves.
func (h Handler) serves(member string) bool {
	return slices.ContainsFunc(h.State.Members, func(m etcd.Member) bool { return m.Name == member && m.Err == nil })
}

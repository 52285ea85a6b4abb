// Package defragmentation gives the free pages of etcd's members back to their disks, one
// member at a time, the leader last, and each only while all members serve. A member answers
// nothing while it is defragmented: its clients wait for it, or ask another one.
package defragmentation

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
)

const (
	// pause is how long the members have to themselves between two of them.
	pause = 36 * time.Second
	// retry is when a member is defragmented again whose free pages did not become fewer, or
	// more again.
	retry = time.Hour
)

// Handler is a defragmentation as operation.Driver knows it: what one reconcile has found of
// etcd.
type Handler struct {
	*operatorv1alpha1.Operation
	// Members is the status of the members, in which attempts are noted.
	Members []operatorv1alpha1.EtcdMember
	Now     time.Time
	// State is what etcd said, and Recorded what is recorded of it.
	State    etcd.State
	Recorded etcd.Identity
	// Defragment defragments one member. It may return before the member is through.
	Defragment func(ctx context.Context, member string) error
	// Event tells what was done, of a member.
	Event func(message string)
}

// Due reports whether there is a member to defragment now, and nothing is against it. A
// single member is not: the registry would be unavailable meanwhile.
func (h Handler) Due() bool {
	next := h.next()
	return next != "" && len(h.Recorded.Members) > 1 && h.State.Gate(h.Recorded, next) == nil
}

// next returns the member to defragment next, the leader last; empty when none is to be.
func (h Handler) next() string {
	var due []string
	for _, member := range h.State.Members {
		if at := h.attempted(member.Name); member.Fragmented() && (at == nil || h.Now.Sub(at.Time) >= retry) {
			due = append(due, member.Name)
		}
	}
	next, _ := h.State.Next(due)
	return next
}

// attempted returns when a member was last defragmented, nil when that is not known.
func (h Handler) attempted(member string) *metav1.Time {
	i := slices.IndexFunc(h.Members, func(m operatorv1alpha1.EtcdMember) bool { return m.Name == member })
	if i < 0 {
		return nil
	}
	return h.Members[i].DefragmentedTime
}

// Steps implements operation.Handler. They are repeated for each member.
func (h Handler) Steps() []operation.Step {
	return []operation.Step{
		{Phase: operatorv1alpha1.PhasePreflight, Run: h.preflight},
		{Phase: operatorv1alpha1.PhaseDefragmentation, Run: h.defragment, Prepare: h.choose},
	}
}

// Rollback implements operation.Handler. There is nothing to roll back.
func (h Handler) Rollback() operation.Step { return operation.Step{} }

// Resume implements operation.Handler.
func (h Handler) Resume(operatorv1alpha1.OperationPhase) operatorv1alpha1.OperationPhase {
	return operatorv1alpha1.PhasePreflight
}

// Waiting implements operation.Handler.
func (h Handler) Waiting(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(string(h.Phase), "etcd is defragmented, one member at a time: %s", fmt.Sprintf(format, args...)).In(verdict.Soon)
}

// preflight is complete when a member can be defragmented now, or none is left to be.
func (h Handler) preflight(context.Context) verdict.Verdict {
	next := h.next()
	if next == "" {
		return verdict.Verdict{}
	}
	for _, member := range h.Members {
		if at := member.DefragmentedTime; at != nil && h.Now.Sub(at.Time) < pause {
			return h.Waiting("%s is next, %s after %s", next, pause, member.Name)
		}
	}
	if err := h.State.Gate(h.Recorded, next); err != nil {
		return h.Waiting("%s is next, but must wait: %s", next, err)
	}
	return verdict.Verdict{}
}

// choose writes down which member is next.
func (h Handler) choose(context.Context) verdict.Verdict {
	h.To = h.next()
	return verdict.Verdict{}
}

// defragment is complete when no member is left to defragment.
func (h Handler) defragment(ctx context.Context) verdict.Verdict {
	i := slices.IndexFunc(h.Members, func(m operatorv1alpha1.EtcdMember) bool { return m.Name == h.To })
	if i < 0 {
		return verdict.Verdict{} // none is left
	}
	if at := h.Members[i].DefragmentedTime; at == nil || at.Time.Before(h.PhaseStartedTime.Time) {
		// Anything can have happened since it was chosen.
		if err := h.State.Gate(h.Recorded, h.To); err != nil || !h.serves() {
			operation.Enter(h.Operation, operatorv1alpha1.PhasePreflight, h.Now)
			return h.Waiting("%s must wait: %v", h.To, err)
		}
		h.Members[i].DefragmentedTime = &metav1.Time{Time: h.Now}
		if err := h.Defragment(ctx, h.To); err != nil {
			// It may go on, as with much data, or have failed, and is tried again later.
			h.Event(fmt.Sprintf("the defragmentation of etcd member %s is not known to be complete: %s", h.To, err))
			return h.Waiting("%s: %s", h.To, err)
		}
		h.Event(fmt.Sprintf("etcd member %s was defragmented", h.To))
		return h.Waiting("%s is through", h.To).In(verdict.AtOnce)
	}
	if !h.serves() {
		return h.Waiting("%s does not answer until it is through", h.To)
	}
	if h.next() != "" {
		operation.Enter(h.Operation, operatorv1alpha1.PhasePreflight, h.Now)
		return h.Waiting("%s is through", h.To).In(verdict.AtOnce)
	}
	return verdict.Verdict{}
}

// serves reports whether the member serves that is being defragmented.
func (h Handler) serves() bool {
	return slices.ContainsFunc(h.State.Members, func(m etcd.Member) bool { return m.Name == h.To && m.Err == nil })
}

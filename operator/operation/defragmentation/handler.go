// Package defragmentation gives the free pages of etcd's members back to their disks, one
// member at a time, the leader last, and each only while all members serve. A member answers
// nothing while it is defragmented: its clients wait for it, or ask another one.
package defragmentation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/maintenance"
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
	// Busy says what else is done to members now, which would take a second one out of
	// service; empty when nothing is. State may be older than that.
	Busy string
	// Window is when members may be defragmented, if one is given.
	Window maintenance.Window
	// Defragment defragments one member. It may return before the member is through.
	Defragment func(ctx context.Context, member string) error
	// Event tells what was done, of a member.
	Event func(message string)
}

// Due reports whether there is a member to defragment now, and nothing is against it.
func (h Handler) Due() bool {
	next := h.next()
	return next != "" && h.gate(next) == nil
}

// Held says which members wait for the maintenance window, and when it opens next, in its
// time zone: zero when it never does. It says nothing when none does.
func (h Handler) Held() (message string, opens time.Time) {
	due := h.fragmented()
	if len(due) == 0 || h.allowed() {
		return "", time.Time{}
	}
	slices.Sort(due)
	message = "much of the file is free of " + strings.Join(due, ", ") + ", to be defragmented "
	switch opens = h.Window.Next(h.Now); {
	case !h.Window.Given():
		message += "in a maintenance window, since a single member answers nothing meanwhile, and there is none: add spec.etcd.maintenanceWindow"
	case opens.IsZero():
		message += "in the maintenance window, which does not open"
	default:
		message += "in the maintenance window, which opens next at " + opens.Format(time.RFC3339)
		if len(h.Recorded.Members) == 1 {
			message += ": the registry is unavailable then for about a second per 100 MB that are in use"
		}
	}
	return message, opens
}

// allowed reports whether a member may be defragmented now: at any time where no window is
// given. A single one is not without a window, since the registry is unavailable meanwhile.
func (h Handler) allowed() bool {
	if !h.Window.Given() {
		return len(h.Recorded.Members) > 1
	}
	return h.Window.Open(h.Now)
}

// gate returns nil when the member can be defragmented now. The outage of a single one is
// accepted with the window.
func (h Handler) gate(member string) error {
	err := h.State.Gate(h.Recorded, member)
	if errors.Is(err, etcd.ErrSingleMember) && h.serves(member) {
		return nil
	}
	return err
}

// next returns the member to defragment next, the leader last; empty when none is to be now.
func (h Handler) next() string {
	if !h.allowed() {
		return ""
	}
	next, _ := h.State.Next(h.fragmented())
	return next
}

// fragmented returns the members that are to be defragmented.
func (h Handler) fragmented() []string {
	var due []string
	for _, member := range h.State.Members {
		if at := h.attempted(member.Name); member.Fragmented() && (at == nil || h.Now.Sub(at.Time) >= retry) {
			due = append(due, member.Name)
		}
	}
	return due
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
		if h.justDone(member) {
			return h.Waiting("%s is next, %s after %s", next, pause, member.Name)
		}
	}
	if h.Busy != "" {
		return h.Waiting("%s is next, but must wait: %s", next, h.Busy)
	}
	if err := h.gate(next); err != nil {
		return h.Waiting("%s is next, but must wait: %s", next, err)
	}
	return verdict.Verdict{}
}

// justDone reports whether a member was defragmented so short a while ago that the members
// are still to be left alone. It is through when the preflight of the next one begins.
func (h Handler) justDone(member operatorv1alpha1.EtcdMember) bool {
	at := member.DefragmentedTime
	if at == nil || h.Now.Sub(at.Time) >= retry {
		return false
	}
	return h.Now.Sub(at.Time) < pause || h.Now.Sub(h.PhaseStartedTime.Time) < pause
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
	at := h.Members[i].DefragmentedTime
	if noted := at != nil && !at.Time.Before(h.PhaseStartedTime.Time); !noted {
		if h.pending() {
			return h.attempt(ctx, &h.Members[i])
		}
		h.Members[i].DefragmentedTime = &metav1.Time{Time: h.Now}
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
	return !h.serves(h.To) || slices.Contains(h.fragmented(), h.To)
}

// attempt defragments the chosen member, unless something has come up since it was chosen.
func (h Handler) attempt(ctx context.Context, member *operatorv1alpha1.EtcdMember) verdict.Verdict {
	if !h.allowed() {
		return verdict.Verdict{} // the window is over
	}
	obstacle := h.Busy
	if err := h.gate(h.To); obstacle == "" && err != nil {
		obstacle = err.Error()
	}
	if obstacle == "" && !h.serves(h.To) {
		obstacle = "it does not answer"
	}
	if obstacle != "" {
		operation.Enter(h.Operation, operatorv1alpha1.PhasePreflight, h.Now)
		return h.Waiting("%s must wait: %s", h.To, obstacle)
	}
	member.DefragmentedTime = &metav1.Time{Time: h.Now}
	if err := h.Defragment(ctx, h.To); err != nil {
		// It may go on, as with much data, or have failed, and is tried again later.
		h.Event(fmt.Sprintf("the defragmentation of etcd member %s is not known to be complete: %s", h.To, err))
		return h.Waiting("%s: %s", h.To, err)
	}
	h.Event(fmt.Sprintf("etcd member %s was defragmented", h.To))
	return h.Waiting("%s is through", h.To).In(verdict.AtOnce)
}

// serves reports whether a member serves.
func (h Handler) serves(member string) bool {
	return slices.ContainsFunc(h.State.Members, func(m etcd.Member) bool { return m.Name == member && m.Err == nil })
}

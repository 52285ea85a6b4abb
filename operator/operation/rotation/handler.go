// Package rotation replaces a CA of a registry by one with another key: the new one is made,
// trusted beside the present one, has certificates issued by it, and is trusted alone. At each
// moment, whoever asks trusts what it is shown. What is in use is in a record, which outlives
// the status; the operation's phases pace what is done.
package rotation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
)

// A CA is one CA of a registry, as one reconcile has found it. Each method but Record
// returns what is missing, nil when nothing is.
type CA interface {
	// Record writes down which generations are in use. They are from the next reconcile on.
	Record(context.Context, generation.InUse) error
	// Issued looks whether the next generation has a certificate.
	Issued(context.Context) error
	// Trusted looks whether all that is to trust both generations does.
	Trusted(context.Context) error
	// Shown looks whether all certificates that are in use are of the one that signs.
	Shown(context.Context) error
	// Withdrawn looks whether nothing trusts the previous generation any more.
	Withdrawn(context.Context) error
}

// Handler is a rotation as operation.Driver knows it.
type Handler struct {
	*operatorv1alpha1.Operation
	// Name says which CA it is: etcd, serving or client.
	Name string
	CA
	// InUse are the generations in use, and Desired what the spec asks for.
	InUse   generation.InUse
	Desired generation.Desired
	Now     time.Time
	// Busy says why no rotation can begin now; empty when one can.
	Busy string
	// Unissued is true while there is no certificate of a next generation, and none was given
	// to anyone, and Lost while the one that was given out is gone: another key must not take
	// its place.
	Unissued, Lost bool
	// Servers looks whether no server trusts the previous generation any more, which comes
	// before the rest; nil where they trust it no longer than others.
	Servers func(context.Context) error
}

// Due reports whether the spec asks for a change, and permits it.
func (h Handler) Due() bool {
	_, due := h.toward()
	return due
}

// toward returns the generations to be in use next.
func (h Handler) toward() (generation.InUse, bool) {
	if h.Lost {
		return h.InUse.Instead(h.Desired)
	}
	return h.InUse.Toward(h.Desired)
}

// GivesWay reports whether the rotation can be put off: nothing has been published of another
// generation. Once it was issued, that its Secret is not there says nothing of the kind.
func (h Handler) GivesWay() bool {
	return h.Phase == operatorv1alpha1.PhasePreflight || h.Phase == operatorv1alpha1.PhaseIssuance && h.Unissued
}

// PutOff has things be as before the rotation began, which GivesWay. It begins again later.
func (h Handler) PutOff(ctx context.Context) error {
	if !h.Unissued {
		return nil // it has not begun to change anything
	}
	return h.Record(ctx, h.InUse.Sole())
}

// Outdated reports whether the rotation can't be completed, since the certificate of the next
// generation is lost. Where yet another one is desired, that is another rotation.
func (h Handler) Outdated() bool { return h.Lost && (!h.Due() || h.Begin().To != h.To) }

// Begin returns the operation with which a rotation that is due begins.
func (h Handler) Begin() *operatorv1alpha1.Operation {
	newest := slices.Max(h.InUse.All())
	if h.InUse.Also == 0 || h.Lost {
		newest = h.Desired.Generation
	}
	o := &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, From: fmt.Sprintf("%s %d", h.Name, h.InUse.Signing), To: fmt.Sprintf("%s %d", h.Name, newest)}
	operation.Enter(o, operatorv1alpha1.PhasePreflight, h.Now)
	return o
}

// Steps implements operation.Handler. The last ones are left out where the spec does not
// permit them, so that the rotation is complete before, and a later one continues. The
// present one is always there: a permission that is taken back does not stop it.
func (h Handler) Steps() []operation.Step {
	steps := []operation.Step{
		{Phase: operatorv1alpha1.PhasePreflight, Run: h.preflight},
		{Phase: operatorv1alpha1.PhaseIssuance, Run: h.issue},
		{Phase: operatorv1alpha1.PhaseTrust, Run: h.trust},
		{Phase: operatorv1alpha1.PhaseReissue, Run: h.reissue},
	}
	if h.Servers != nil {
		steps = append(steps, operation.Step{Phase: operatorv1alpha1.PhaseServer, Run: h.servers})
	}
	steps = append(steps, operation.Step{Phase: operatorv1alpha1.PhaseWithdrawal, Run: h.withdraw})
	last, oldest := operatorv1alpha1.PhaseWithdrawal, slices.Min(h.InUse.All())
	switch {
	case oldest > h.Desired.Replaceable && !h.InUse.Previous():
		last = operatorv1alpha1.PhaseTrust
	case oldest > h.Desired.Dropped:
		last = operatorv1alpha1.PhaseReissue
	}
	at := func(phase operatorv1alpha1.OperationPhase) int {
		return slices.IndexFunc(steps, func(s operation.Step) bool { return s.Phase == phase })
	}
	return steps[:max(at(last), at(h.Phase))+1]
}

// Rollback implements operation.Handler. There is nothing to roll back: with both trusted,
// the registry is as well off as before.
func (h Handler) Rollback() operation.Step { return operation.Step{} }

// Resume implements operation.Handler.
func (h Handler) Resume(at operatorv1alpha1.OperationPhase) operatorv1alpha1.OperationPhase {
	return at
}

// Waiting implements operation.Handler.
func (h Handler) Waiting(format string, args ...any) verdict.Verdict {
	return verdict.Waiting(string(h.Phase), "the %s CA is rotated, from generation %s to %s: %s", h.Name, number(h.From), number(h.To), fmt.Sprintf(format, args...)).In(verdict.Soon)
}

// number returns the generation in what an operation is from or to.
func number(of string) string { return of[strings.LastIndex(of, " ")+1:] }

// preflight is complete when nothing is against a change.
func (h Handler) preflight(context.Context) verdict.Verdict {
	if h.Busy != "" {
		return h.Waiting("nothing is changed until this is resolved: %s", h.Busy)
	}
	return verdict.Verdict{}
}

// issue is complete when there is another generation.
func (h Handler) issue(ctx context.Context) verdict.Verdict {
	if h.InUse.Also == 0 || h.Lost {
		return h.record(ctx)
	}
	if h.InUse.Previous() {
		return verdict.Verdict{}
	}
	if err := h.Issued(ctx); err != nil {
		return h.Waiting("%s; nothing is published of it so far, so that an upgrade is made first if one is asked for", err)
	}
	return verdict.Verdict{}
}

// trust is complete when both generations are trusted.
func (h Handler) trust(ctx context.Context) verdict.Verdict {
	if !h.InUse.Next() {
		return verdict.Verdict{}
	}
	return h.trusted(ctx)
}

// trusted is complete when there is a next generation, and it is trusted beside the one that
// signs: what trusts the latter alone would trust all that there is, if there were no other.
func (h Handler) trusted(ctx context.Context) verdict.Verdict {
	if v := h.missing(h.Issued(ctx)); !v.Complete() {
		return v
	}
	return h.missing(h.Trusted(ctx))
}

// reissue is complete when the newest generation signs, and what it signed is shown.
func (h Handler) reissue(ctx context.Context) verdict.Verdict {
	if h.InUse.Next() {
		// Someone may have taken trust back since it was verified.
		if v := h.trusted(ctx); !v.Complete() {
			return v
		}
		return h.record(ctx)
	}
	return h.missing(h.Shown(ctx))
}

// servers is complete when no server trusts the previous generation.
func (h Handler) servers(ctx context.Context) verdict.Verdict {
	if !h.InUse.Previous() {
		return verdict.Verdict{}
	}
	if v := h.missing(h.Shown(ctx)); !v.Complete() {
		return v
	}
	return h.missing(h.Servers(ctx))
}

// withdraw is complete when one generation is in use.
func (h Handler) withdraw(ctx context.Context) verdict.Verdict {
	if !h.InUse.Previous() {
		return verdict.Verdict{}
	}
	if v := h.missing(h.Shown(ctx)); !v.Complete() {
		return v
	}
	if v := h.missing(h.Withdrawn(ctx)); !v.Complete() {
		return v
	}
	return h.record(ctx)
}

// record writes down the next generations in use. It is complete where there are none: what
// is to be done was done.
func (h Handler) record(ctx context.Context) verdict.Verdict {
	next, due := h.toward()
	if !due {
		return verdict.Verdict{}
	}
	if err := h.Record(ctx, next); err != nil {
		return verdict.Failed(fmt.Errorf("record the generations in use of the %s CA: %w", h.Name, err))
	}
	return h.Waiting("the generations in use are recorded: %s", next.Words()).In(verdict.AtOnce)
}

// missing returns the verdict on what is missing.
func (h Handler) missing(err error) verdict.Verdict {
	if err != nil {
		return h.Waiting("%s", err)
	}
	return verdict.Verdict{}
}

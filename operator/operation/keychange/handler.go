// Package keychange changes the keys under which a registry's clusters are stored, as
// encryption.State.Next says: servers read with a key before any writes with it, everything is
// stored again under the key that writes, and only then others are taken away. What is in use is
// in the record of etcd's identity; the operation's phases pace what is done.
package keychange

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Handler is a change of keys as operation.Driver knows it.
type Handler struct {
	*operatorv1alpha1.Operation
	// State is what is known of the keys. Loaded is found out with Missing.
	State encryption.State
	Now   time.Time
	// Busy says why no change can begin now; empty when one can.
	Busy string
	// Missing says which servers do not have the keys in use yet; empty when all do.
	Missing string
	// Verified is the ID of the key that everything is known to be stored under.
	Verified string
	// Verify writes down that this is the key that writes.
	Verify func(context.Context) error
	// Record writes down other keys in use. They are from the next reconcile on.
	Record func(context.Context, encryption.Keys) error
	// Rewrite has clusters stored again under the key that writes, for some time. It returns
	// what is stored under each key once a walk has found all of them under that one, and nil
	// before, with how far it is.
	Rewrite func(context.Context) (stored map[string]int, progress string, err error)
	// Readable says how what was stored under another key before that walk can still be read:
	// from etcd's history, until it is compacted. It is empty when no one can.
	Readable func(context.Context) (string, error)
}

// Due reports whether other keys than those in use are desired.
func (h Handler) Due() bool {
	state := h.State
	state.Loaded = true
	switch state.Next().Kind {
	case encryption.Add, encryption.Activate:
		return true
	case encryption.Count:
		// A change that was interrupted, or the last backup under a key is gone.
		return len(state.Former()) > 0 || h.Verified != state.InUse[0].ID()
	}
	return false
}

// Begin returns the operation with which a change that is due begins.
func (h Handler) Begin() *operatorv1alpha1.Operation {
	o := &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationEncryption, From: bounded(h.State.InUse[0].ID()), To: bounded(h.State.Desired[0].ID())}
	operation.Enter(o, operatorv1alpha1.PhasePreflight, h.Now)
	return o
}

// bounded keeps an ID within what an operation can hold.
func bounded(id string) string { return id[:min(len(id), 64)] }

// phases are those after the preflight, in their order, with the kinds of steps of each.
var phases = []struct {
	phase operatorv1alpha1.OperationPhase
	kinds []encryption.Kind
}{
	{operatorv1alpha1.PhaseKeyAddition, []encryption.Kind{encryption.Add}},
	{operatorv1alpha1.PhaseKeyActivation, []encryption.Kind{encryption.Activate}},
	{operatorv1alpha1.PhaseStorageMigration, []encryption.Kind{encryption.Count, encryption.Rewrite}},
	{operatorv1alpha1.PhaseKeyRemoval, []encryption.Kind{encryption.Remove}},
}

// Steps implements operation.Handler.
func (h Handler) Steps() []operation.Step {
	steps := []operation.Step{{Phase: operatorv1alpha1.PhasePreflight, Run: h.preflight}}
	for i := range phases {
		steps = append(steps, operation.Step{Phase: phases[i].phase, Run: func(ctx context.Context) verdict.Verdict { return h.run(ctx, i) }})
	}
	return steps
}

// Rollback implements operation.Handler. There is nothing to roll back: at each moment all
// servers read everything, and the spec can be changed at any time.
func (h Handler) Rollback() operation.Step { return operation.Step{} }

// Resume implements operation.Handler.
func (h Handler) Resume(at operatorv1alpha1.OperationPhase) operatorv1alpha1.OperationPhase {
	return at
}

// Waiting implements operation.Handler.
func (h Handler) Waiting(format string, args ...any) verdict.Verdict {
	message := fmt.Sprintf(format, args...)
	if kept := h.State.Kept(); len(kept) > 0 {
		message += fmt.Sprintf("; the servers keep %s, which spec.server.encryption no longer names, until no cluster is stored under it", strings.Join(kept, ", "))
	}
	if kept := h.State.ForBackups(); len(kept) > 0 {
		message += fmt.Sprintf("; they read with %s as long as a ClusterRegistryBackup needs it", strings.Join(kept, ", "))
	}
	return verdict.Waiting(string(h.Phase), "the keys to encrypt with are changed, from %s to %s: %s", h.From, h.To, message).In(verdict.Soon)
}

// preflight is complete when nothing is against a change.
func (h Handler) preflight(context.Context) verdict.Verdict {
	if h.Busy != "" {
		return h.Waiting("it waits: %s", h.Busy)
	}
	return verdict.Verdict{}
}

// run takes a phase further. It is complete when what follows is of a later one. What is
// desired may have changed: then an earlier one begins again.
func (h Handler) run(ctx context.Context, at int) verdict.Verdict {
	h.State.Loaded = h.Missing == ""
	step := h.State.Next()
	migrating := phases[at].phase == operatorv1alpha1.PhaseStorageMigration || phases[at].phase == operatorv1alpha1.PhaseKeyRemoval
	if step.Kind == encryption.Count && migrating {
		stored, progress, err := h.Rewrite(ctx)
		if stored == nil {
			return h.rewriting(progress, err)
		}
		if h.Verified != h.State.InUse[0].ID() {
			if err := h.Verify(ctx); err != nil {
				return verdict.Failed(fmt.Errorf("record under which key clusters are stored: %w", err))
			}
		}
		h.State.Stored = stored
		step = h.State.Next()
	}
	switch step.Kind {
	case encryption.Done:
		return verdict.Verdict{}
	case encryption.Load:
		return h.Waiting("%s", h.Missing)
	}
	i := slices.IndexFunc(phases, func(p struct {
		phase operatorv1alpha1.OperationPhase
		kinds []encryption.Kind
	}) bool {
		return slices.Contains(p.kinds, step.Kind)
	})
	switch {
	case i > at:
		return verdict.Verdict{}
	case i < at:
		operation.Enter(h.Operation, phases[i].phase, h.Now)
		h.To = bounded(h.State.Desired[0].ID())
		return h.Waiting("starts again: the desired keys have changed").In(verdict.AtOnce)
	case step.Keys == nil:
		return h.Waiting("clusters are stored under %s, and are not rewritten", strings.Join(step.About, ", "))
	}
	if step.Kind == encryption.Remove {
		readable, err := h.Readable(ctx)
		if err != nil {
			return h.Waiting("it is not known whether etcd has history under %s: %s", strings.Join(step.About, ", "), err)
		}
		if readable != "" {
			return h.Waiting("%s", readable).In(verdict.Backstop)
		}
	}
	if err := h.Record(ctx, step.Keys); err != nil {
		return verdict.Failed(fmt.Errorf("record the keys in use: %w", err))
	}
	return h.Waiting("the servers are given %s", strings.Join(step.Keys.IDs(), ", ")).In(verdict.AtOnce)
}

// rewriting says how far clusters are rewritten.
func (h Handler) rewriting(progress string, err error) verdict.Verdict {
	h.Progress = string(h.Phase) + " " + progress
	if err != nil {
		return h.Waiting("%s clusters are stored under %s; %s", progress, h.State.InUse[0].ID(), err)
	}
	return h.Waiting("%s clusters are stored under %s", progress, h.State.InUse[0].ID()).In(verdict.AtOnce)
}

package operation

import (
	"context"
	"slices"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// An Operation is one kind of long operation of a registry, as one reconcile has found it: when
// it begins, and how it continues.
type Operation struct {
	// Types are those that it is of in the status while it is under way.
	Types []operatorv1alpha1.OperationType
	// Writes is true of one that changes objects of the host cluster in every phase: it waits
	// while nothing of these may be changed, also where no stage is why.
	Writes bool
	// Begin returns the operation that begins now, and that it starts; nil where none does, and
	// when to look again. It is asked while no operation is under way.
	Begin func(context.Context) (*operatorv1alpha1.Operation, verdict.Verdict)
	// Handler returns the operation that is under way. Without a handler, it goes no further
	// now, and the verdict is what it waits for; it is over where that is done.
	Handler func(context.Context) (Handler, verdict.Verdict)
	// Ended is told how it has ended, while the status still has it.
	Ended func(Progress)
}

// A Run drives the operations of one registry in one reconcile. It alone decides which one is
// under way: one at a time.
type Run struct{ pass.Pass }

// All takes the operation that is under way one step further, or begins the first one that is
// due. What else is under way is not its business.
func (r Run) All(ctx context.Context, operations []Operation) verdict.Verdict {
	out := verdict.Verdict{}
	for _, o := range operations {
		under := r.Registry.Status.Operation
		if under != nil && !slices.Contains(o.Types, under.Type) {
			continue
		}
		v := r.Step(ctx, o)
		if !v.Complete() || r.Registry.Status.Operation == nil && r.Before.Operation != nil {
			return v // it is under way, or was until now
		}
		if v.After > 0 && (out.After == 0 || v.After < out.After) {
			out = v
		}
	}
	return out
}

// Step takes an operation one step further if one is under way, which is of its kind then, and
// begins it if it is due.
func (r Run) Step(ctx context.Context, o Operation) verdict.Verdict {
	status := &r.Registry.Status
	if status.Operation == nil {
		begun, v := o.Begin(ctx)
		if begun != nil {
			Begin(r.Registry, begun)
		}
		return v
	}
	handler, v := o.Handler(ctx)
	if handler == nil {
		if !v.Complete() {
			return v
		}
		End(r.Registry)
		return v.In(verdict.AtOnce)
	}
	reason, until := r.Halted()
	driver := Driver{Status: status.Operation, Recorded: r.Before.Operation, Now: r.Now, ReadOnly: r.Frozen(), HeldReason: reason, HeldUntil: until, HeldRetry: verdict.Resync}
	if driver.ReadOnly == "" && o.Writes && r.ReadOnly() {
		driver.ReadOnly = "it continues when " + r.ReadOnlyUntil()
	}
	v, progress := driver.Advance(ctx, handler)
	if progress == UnderWay {
		return v
	}
	o.Ended(progress)
	End(r.Registry)
	return verdict.Verdict{}.In(verdict.AtOnce) // what was observed is no longer so
}

// Begin has an operation be the one that is under way. Nothing is done before the host cluster
// has it.
func Begin(registry *operatorv1alpha1.ClusterRegistry, o *operatorv1alpha1.Operation) {
	registry.Status.Operation = o
}

// End has no operation be under way: the one that was is complete, or gives way to another.
func End(registry *operatorv1alpha1.ClusterRegistry) { registry.Status.Operation = nil }

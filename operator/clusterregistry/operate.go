package clusterregistry

import (
	"cmp"
	"context"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

// operations are the long operations beside an upgrade, in the order in which they begin
// where several are due.
var operations = []struct {
	kind operatorv1alpha1.OperationType
	// name is what an upgrade waits for while one is under way.
	name string
	// run takes the operation one step further if it is under way, and begins it if it is
	// due and nothing else is under way.
	run func(*Reconciler, context.Context, *scope) verdict.Verdict
}{
	{operatorv1alpha1.OperationRotation, "the rotation of a CA", (*Reconciler).rotate},
	{operatorv1alpha1.OperationEncryption, "the change of the keys to encrypt with", (*Reconciler).changeKeys},
	{operatorv1alpha1.OperationDefragmentation, "the defragmentation of etcd", (*Reconciler).defragment},
}

// operating returns the name of the operation beside an upgrade that is under way, nothing
// when there is none, or it is of a type that this operator does not know.
func (s *scope) operating() string {
	for _, o := range operations {
		if under := s.Registry.Status.Operation; under != nil && under.Type == o.kind {
			return o.name
		}
	}
	return ""
}

// operate takes the operation that is under way one step further, or begins one.
func (r *Reconciler) operate(ctx context.Context, s *scope) verdict.Verdict {
	out := done
	for _, o := range operations {
		if under := s.Registry.Status.Operation; under != nil && under.Type != o.kind {
			continue
		}
		v := o.run(r, ctx, s)
		if !v.Complete() || s.Registry.Status.Operation == nil && s.Before.Operation != nil {
			return v // it is under way, or was until now
		}
		if v.After > 0 && (out.After == 0 || v.After < out.After) {
			out = v
		}
	}
	return out
}

// note adds what a person should know to a part that is ready.
func (s *scope) note(kind, reason, message string) {
	if v, reached := s.verdicts[kind]; reached && v.Complete() {
		s.verdicts[kind] = v.Note(cmp.Or(v.Reason, reason), message)
	}
}

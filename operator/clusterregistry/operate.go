package clusterregistry

import (
	"cmp"
	"context"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/verdict"
)

// titles are the long operations beside an upgrade: what others wait for while one is under way.
var titles = map[operatorv1alpha1.OperationType]string{
	operatorv1alpha1.OperationRotation:        "the rotation of a CA",
	operatorv1alpha1.OperationEncryption:      "the change of the keys to encrypt with",
	operatorv1alpha1.OperationDefragmentation: "the defragmentation of etcd",
}

// operating returns the title of the operation beside an upgrade that is under way, nothing
// when there is none, or it is of a type that this operator does not know.
func (s *scope) operating() string {
	if under := s.Registry.Status.Operation; under != nil {
		return titles[under.Type]
	}
	return ""
}

// operations are those beside an upgrade, in the order in which they begin where several are
// due.
func (r *Reconciler) operations(s *scope) []operation.Operation {
	out := []operation.Operation{r.rotation(s), r.keysOperation(s)}
	if s.ownEtcd() {
		out = append(out, r.defragmenting(s))
	}
	return out
}

// operate takes the operation that is under way one step further, or begins one.
func (r *Reconciler) operate(ctx context.Context, s *scope) verdict.Verdict {
	return s.driver().All(ctx, r.operations(s))
}

// driver drives the operations of the registry.
func (s *scope) driver() operation.Run { return operation.Run{Pass: s.Pass} }

// note adds what a person should know to a part that is ready.
func (s *scope) note(kind, reason, message string) {
	if v, reached := s.verdicts[kind]; reached && v.Complete() {
		s.verdicts[kind] = v.Note(cmp.Or(v.Reason, reason), message)
	}
}

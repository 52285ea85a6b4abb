package clusterregistry

import (
	"cmp"
	"context"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/defragmentation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// operate takes the operation beside an upgrade that is under way one step further, or begins
// the first one that is due, in this order.
func (r *Reconciler) operate(ctx context.Context, s *scope) verdict.Verdict {
	free := r.defragmentation(s)
	all := []operation.Operation{r.rotation(s), r.keysOperation(s)}
	if free.Ours() {
		all = append(all, free.Operation())
	}
	v := s.driver().All(ctx, all)
	s.note(free.Notes()...)
	return v
}

// defragmentation is what is done about the free pages of etcd.
func (r *Reconciler) defragmentation(s *scope) *defragmentation.Drive {
	return &defragmentation.Drive{Pass: s.Pass, Revisions: &r.revisions}
}

// giveWay ends an operation for which an etcd that is full would wait, or says that it can't be.
func (r *Reconciler) giveWay(s *scope) {
	ended, besides := r.defragmentation(s).GiveWay()
	if ended {
		s.upgrade = nil
	}
	if besides != "" {
		v := s.verdicts[operatorv1alpha1.ConditionEtcdReady]
		v.Message += besides
		s.verdicts[operatorv1alpha1.ConditionEtcdReady] = v
	}
}

// driver drives the operations of the registry.
func (s *scope) driver() operation.Run { return operation.Run{Pass: s.Pass} }

// note adds what a person should know to parts that are ready.
func (s *scope) note(notes ...pass.Note) {
	for _, note := range notes {
		if v, reached := s.verdicts[note.Condition]; reached && v.Complete() {
			s.verdicts[note.Condition] = v.Note(cmp.Or(v.Reason, note.Reason), note.Message)
		}
	}
}

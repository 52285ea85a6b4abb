package members

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/verdict"
)

// wentBack is done unless etcd is at an older revision than it was known to have been at, or was
// and no person has decided. Nothing is changed until then: whatever the operator did would be
// done with what etcd has, and to the member that has more.
func (s *Stage) wentBack(ctx context.Context, state etcd.State) verdict.Verdict {
	record, isNew := s.Identity.Record.Follow(state.Newest(), s.Remembered, s.Now)
	if isNew && !s.ReadOnly() {
		if err := s.Identity.Write(ctx, record); err != nil {
			return verdict.Failed(fmt.Errorf("record etcd's newest revision: %w", err))
		}
		if back := record.WentBack; back != nil {
			s.Event(corev1.EventTypeWarning, operatorv1alpha1.ReasonWentBack, operatorv1alpha1.ConditionEtcdReady, "etcd went back from revision %d to %d: what it had acknowledged in between is not in what it has", back.From, back.To)
		}
	}
	back := record.WentBack
	if back == nil || record.Recovered.Pending() {
		return done
	}
	silent := ""
	if failures := state.Failures(); failures != "" {
		silent = ". A member that is not ready may have what is missing: " + failures
	}
	return verdict.Waiting(operatorv1alpha1.ReasonWentBack, "etcd went back from revision %d to %d, as after volumes were set back to older copies: %d revisions that it had acknowledged are not in what it has, at least. Clients are served what it has, and nothing of the registry is replaced, upgraded, backed up or pruned until a person decides with which copy of the data it continues, in spec.recovery (kubectl registry recover plan %s shows both sides; this loss is %s). Keep all volumes, and delete no claim and no pod%s",
		back.From, back.To, back.From-back.To, s.Registry.Name, back.ID, silent).AsReadOnly().In(verdict.Backstop)
}

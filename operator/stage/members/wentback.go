package members

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/verdict"
)

// wentBack is done unless etcd is at an older revision than it was known to have been at, or was
// and no person has decided. Nothing is changed until then: whatever the operator did would be
// done with what etcd has, and to the member that has more.
func (s *Stage) wentBack(ctx context.Context, state etcd.State) verdict.Verdict {
	record, isNew := s.Identity.Record.Follow(state.Newest(), s.Remembered, s.Now)
	if isNew && !s.ReadOnly() {
		if record.WentBack == nil {
			record = s.mark(ctx, *record)
		}
		if err := s.Identity.Write(ctx, record); err != nil {
			return verdict.Failed(fmt.Errorf("record etcd's newest revision: %w", err))
		}
		if back := record.WentBack; back != nil {
			s.tellWentBack(back)
		}
	}
	back := record.WentBack
	if back == nil || record.Recovered.Pending() {
		return done
	}
	bound := "at least"
	if back.Passed {
		bound = "at most"
	}
	return verdict.Waiting(operatorv1alpha1.ReasonWentBack, "%s, as after volumes were set back to older copies: %s %d known revisions that it had acknowledged are not in what it has. Clients are served what it has, and nothing of the registry is replaced, upgraded, backed up or pruned until a person decides with which copy of the data it continues, in spec.recovery (kubectl registry recover plan %s shows both sides; this loss is %s). Keep all volumes, and delete no claim and no pod%s",
		back, bound, back.From-back.To, s.Registry.Name, back.ID, silent(state)).AsReadOnly().In(verdict.Backstop)
}

// externalWentBack is wentBack of an etcd that others run, into which no mark is written. What is
// known of it is recorded in the status, as soon as its identity is.
func (s *Stage) externalWentBack(state etcd.State) verdict.Verdict {
	if s.Before.Etcd.ClusterID == "" {
		s.Registry.Status.Etcd.Newest, s.Registry.Status.Recovery = nil, nil
		return done
	}
	record, isNew := identity.External(&s.Registry.Status).Follow(state.Acknowledged(), s.Remembered, s.Now)
	identity.WriteExternal(&s.Registry.Status, record, state)
	back := record.WentBack
	if back == nil {
		return done
	}
	if isNew {
		s.tellWentBack(back)
	}
	return verdict.Waiting(operatorv1alpha1.ReasonWentBack, "%s, as after it was restored from an older snapshot: at least %d known revisions that it had acknowledged are not in what it has. Clients are served what it has, and nothing of the registry is replaced or upgraded until a person decides. Ask those who run it; that it continues with what it has is approved in spec.recovery (kubectl registry recover plan %s has the command; this loss is %s)%s",
		back, back.From-back.To, s.Registry.Name, back.ID, silent(state)).AsReadOnly().In(verdict.Backstop)
}

// tellWentBack tells that etcd went back.
func (s *Stage) tellWentBack(back *etcd.WentBack) {
	s.Event(corev1.EventTypeWarning, operatorv1alpha1.ReasonWentBack, operatorv1alpha1.ConditionEtcdReady, "%s: what it had acknowledged in between is not in what it has", back)
}

// silent says which members may have what is missing, as more of a sentence.
func silent(state etcd.State) string {
	failures := state.Failures()
	if failures == "" {
		return ""
	}
	return ". A member that is not ready may have what is missing: " + failures
}

// mark writes the operator's mark into etcd before that is recorded. Where it can't be written,
// as where etcd is full, the one before stands.
func (s *Stage) mark(ctx context.Context, record etcd.Record) *etcd.Record {
	marked, err := s.Mark(ctx, s.found.Access, record.Newest.Position)
	if err != nil {
		logf.FromContext(ctx).Info("without a newer mark, it may not be noticed that etcd went back; the operator will retry when etcd has grown", "error", err.Error())
	}
	record.Newest.Position = marked
	return &record
}

package clusterregistry

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operation/upgrade/migration"
	"github.com/clusterregistry/operator/operator/verdict"
)

// rewriteTime is for how long clusters are rewritten before the rest of the
// registry is looked at again. One request may take longer.
const rewriteTime = 5 * time.Second

// rewrite is complete when no cluster is stored in another version of the API than
// the one that the new release stores.
func (r *Reconciler) rewrite(ctx context.Context, s *scope) verdict.Verdict {
	to, until := s.upgrade.to, time.Now().Add(rewriteTime)
	at := r.notes.of(s.registry.UID).walk
	page, err := at.Read(ctx, s.etcdAccess, to)
	if err != nil {
		return s.waits("in which version clusters are stored is not known: %s", err)
	}
	client, err := r.client(ctx, s)
	if err != nil {
		return failed(err)
	}
	next, rewritten, err := at.Rewrite(page, func(name string) error { return client.Rewrite(ctx, to.Stores, name) }, func() bool { return time.Now().After(until) })
	if next.Complete() {
		r.tellRefused(s, next.Refused())
		return done
	}
	r.notes.change(s.registry.UID, func(n *note) { n.walk = next })
	stored, total := at.Stored(page, rewritten)
	s.progress(int32(stored), int32(total))
	if err != nil {
		return s.waits("%d of %d clusters are stored as %s does; %s", stored, total, to.Version, err)
	}
	return s.waits("%d of %d clusters are stored as %s does", stored, total, to.Version).In(atOnce)
}

// tellRefused tells, once all is rewritten, which clusters v1alpha1 still shows as
// older releases did.
func (r *Reconciler) tellRefused(s *scope, refused migration.Refusals) {
	if refused.Count == 0 {
		return
	}
	message := verdict.Bounded(fmt.Sprintf("clients of v1alpha1 see %d of the clusters as earlier releases showed them, each until its endpoints are next changed through v1beta1: an update without a change was refused, first: %s", refused.Count, refused.First))
	r.event(s, corev1.EventTypeWarning, "MigrationRefused", string(operatorv1alpha1.PhaseStorageMigration), "%s", message)
	history.Remark(s.registry, message)
}

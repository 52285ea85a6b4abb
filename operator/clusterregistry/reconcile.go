package clusterregistry

import (
	"cmp"
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/auditing"
	"github.com/clusterregistry/operator/operator/inventory"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/keychange"
	"github.com/clusterregistry/operator/operator/operation/recovery"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/stage/certificates"
	"github.com/clusterregistry/operator/operator/stage/controller"
	"github.com/clusterregistry/operator/operator/undecodable"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
	"github.com/clusterregistry/operator/operator/visibility"
)

// Reconcile drives one ClusterRegistry toward its spec:
//  1. observe: read it and what decides on its objects, once, into a scope
//  2. plan:    which release may run?
//  3. render:  scope to objects, without side effects
//  4. stages:  certificates, etcd, server, endpoint; each waits for the one before. Then
//     the controller and backups, for which nothing waits
//  5. advance: an upgrade goes to its next phase when the present one is complete
//  6. read:    are clients served now?
//  7. report:  conditions from the scope, one status patch, always
//
// A registry that is gone leaves nothing behind, a deleted one goes in order, with
// deletionPolicy Snapshot after its last backup, for which it runs on.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.Watches(request.Namespace) {
		return reconcile.Result{}, nil // an object outside of namespaces named it
	}
	s, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return r.drive(ctx, s, err)
	}
	if s == nil {
		return reconcile.Result{}, r.sweep(ctx, request.NamespacedName)
	}
	if s.Registry.Status.Operation == nil || s.Deleting() != "" {
		r.notes.Forget(s.Registry.UID)
	}
	if s.Deleting() != "" {
		r.retractions.Delete(s.Registry.UID)
		if s.saving().SavesFirst() {
			return r.saveFirst(ctx, s)
		}
		return r.delete(ctx, s)
	}
	if !controllerutil.ContainsFinalizer(s.Registry, operatorv1alpha1.Finalizer) {
		// This comes before everything else: what is made is to be removed.
		if err := r.patchFinalizers(ctx, s, controllerutil.AddFinalizer); err != nil {
			return reconcile.Result{}, fmt.Errorf("add the finalizer to %s: %w", s.Owner(), err)
		}
	}
	return r.drive(ctx, s, nil)
}

// drive takes a registry as far as it gets, and reports that; unread is why it could not be
// observed. However early the reconcile ends, namespaces of the host cluster must not hang.
func (r *Reconciler) drive(ctx context.Context, s *scope, unread error) (reconcile.Result, error) {
	if unread == nil {
		r.run(ctx, s)
	}
	v := r.left(ctx, s)
	if unread != nil {
		after, err := undecodable.Registry(ctx, r.HostCluster, unread, v)
		return reconcile.Result{RequeueAfter: after}, err
	}
	s.available = r.available(ctx, s)
	return r.report(ctx, s)
}

// run goes through plan, render and stages, as far as it gets.
func (r *Reconciler) run(ctx context.Context, s *scope) {
	s.Aggregation = r.Aggregation(s.Pass)
	proceed := s.record(operatorv1alpha1.ConditionVersionSupported, s.plan(r.Releases))
	if !proceed || !s.Aggregation.Complete() && !s.Installed() {
		return
	}
	var err error
	if s.Authorities.Serving, err = certificates.Retire(ctx, r.access(s), s.Authorities.Serving); err != nil {
		s.record(operatorv1alpha1.ConditionCertificatesReady, verdict.Failed(err))
		return
	}
	if s.Keys, err = keychange.Read(ctx, s.Pass); err != nil {
		s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Failed(err))
		return
	}
	s.audit = auditing.Read(ctx, s.Objects)
	if s.visibility, err = visibility.Read(ctx, s.Pass); err != nil {
		s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Failed(err))
		return
	}
	if s.reach, err = r.Reach(ctx, s.Pass); err != nil {
		s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Failed(err))
		return
	}
	s.backups = s.saving().Observe(ctx, r.backupKind.Readable(ctx, s.Live, s.Registry.Namespace))
	var v verdict.Verdict
	if s.restore, v = r.restoring(s).Observe(ctx); !v.Complete() {
		s.record(operatorv1alpha1.ConditionEtcdReady, v)
		return
	}
	s.restore = r.restoring(s).ObserveRecovery(ctx)
	rendered, err := render.Render(s.input(r.Environment))
	if err != nil {
		s.record(operatorv1alpha1.ConditionVersionSupported, verdict.Failed(fmt.Errorf("render the objects of %s: %w", s.Release.Version, err)))
		return
	}
	s.Rendered = rendered
	if condition, until := s.Paused(); until != "" {
		s.FreezeBy(condition, until)
	}
	if s.restore, v = r.restoring(s).LookUp(ctx); !v.Complete() {
		s.record(operatorv1alpha1.ConditionEtcdReady, v)
		return
	}
	for _, condition := range pass.Parts(s.Registry.Spec.Mode)[1:] {
		if !s.record(condition, stages[condition](r, ctx, s)) {
			r.noteQuorumFirst(ctx, s)
			return
		}
	}
	r.controller(ctx, s)
	s.backUp(ctx)
	s.found[operatorv1alpha1.ConditionProgressing] = r.proceed(ctx, s)
}

// plan decides which release is rendered, and whether an upgrade begins.
func (s *scope) plan(all []version.Release) verdict.Verdict {
	planned := upgrade.Plan(s.Pass, all)
	s.Release, s.upgrade = planned.Release, planned.Upgrade
	return planned.Verdict
}

// proceed takes the registry further once the stages have run: what is not rendered any
// more goes, and an upgrade advances.
func (r *Reconciler) proceed(ctx context.Context, s *scope) verdict.Verdict {
	s.retraction = r.retract(ctx, s) // by which what is left of the controller is pruned
	err := s.prune(ctx)
	r.giveWay(s)
	drive := r.changeMembers
	if s.Recovering() != nil {
		drive = r.recover
	}
	v := drive(ctx, s)
	switch {
	case s.Recovering() != nil: // all else waits
	case s.upgrade != nil:
		v = s.besides(v, r.advance(ctx, s))
	case !operation.ChangesMembers(s.Registry.Status.Operation):
		s.operation = r.operate(ctx, s)
	}
	s.note(r.rotation(s).Notes())
	s.note(r.keyChange(s).Notes())
	if err == nil {
		return v
	}
	left := verdict.Failed(fmt.Errorf("delete objects that are no longer part of the registry: %w", err))
	if v.Complete() {
		return left
	}
	v.Message, v.Err = v.Message+"; besides, "+left.Message, cmp.Or(v.Err, left.Err)
	return v
}

// prune deletes what the registry no longer consists of. The Lease of a controller that was
// removed says that there may be reports to take back, and stays until there are none.
func (s *scope) prune(ctx context.Context) error {
	var stays []operatorv1alpha1.ObjectReference
	if !s.retraction.Complete() {
		stays = append(stays, controller.Lease(s.Objects))
	}
	return inventory.Prune(ctx, s.Pass, stays...)
}

func (s *scope) input(environment render.Environment) render.Input {
	snapshot := ""
	if operation := s.Registry.Status.Operation; operation != nil && operation.Phase == operatorv1alpha1.PhaseSnapshot {
		snapshot = operation.Snapshot
	}
	return render.Input{
		Snapshot:    snapshot,
		Backup:      s.backups.Rendered(),
		Restore:     s.restore.Rendered(),
		Members:     s.Identity.Members(),
		Certified:   s.Identity.Certified(),
		Endpoints:   s.Identity.Endpoints(),
		Voters:      s.Identity.Voters(),
		Volumes:     s.Volumes.Rendered(),
		Registry:    s.Registry,
		Release:     render.ReleaseOf(s.Release),
		HostVersion: s.hostMinor,
		Trust:       s.Authorities.Rendered(),
		Authorities: s.Authorities.InUse(),
		Addresses:   s.addresses,
		Encryption:  s.Keys.Render(),
		Audit:       s.audit.Render,
		Visibility:  s.visibility.Shown,
		Reached:     s.reach.Namespaces,
		Stopped:     recovery.Stopped(s.Pass),
		UIDRange:    s.uidRange,
		Environment: environment,
	}
}

package clusterregistry

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/metrics"
	"github.com/clusterregistry/operator/operator/removal"
	"github.com/clusterregistry/operator/operator/stage/restoring"
	"github.com/clusterregistry/operator/operator/verdict"
)

// delete takes a registry down: first its registration with the host, then the
// rest but for what is retained. The finalizer stays until all of it is gone, so
// that a registry of the same name finds the place free.
func (r *Reconciler) delete(ctx context.Context, s *scope) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(s.Registry, operatorv1alpha1.Finalizer) {
		return reconcile.Result{}, nil
	}
	restoring.Report(s.Pass) // when the record is gone, this says whose the claims are
	r.forget(client.ObjectKeyFromObject(s.Registry))
	down := removal.Removal{Pass: s.Pass, Discovery: r.Discovery, Releases: r.Releases, Data: s.saving().DropsData()}
	waits, err := down.TakeDown(ctx)
	if err != nil {
		waits = err.Error()
	}
	// After what may hurt the host cluster, whatever becomes of it.
	all, failed := r.backupKind.Settle(ctx, r.HostCluster, client.ObjectKeyFromObject(s.Registry), s.Deleting())
	if failed != nil && waits == "" {
		waits = failed.Error()
	}
	err = errors.Join(err, failed)
	gap := s.saving().Gap(all)
	if failed == nil {
		s.saving().TellGap(gap)
	}
	if waits == "" {
		down.Disown(ctx)
		return reconcile.Result{}, client.IgnoreNotFound(r.patchFinalizers(ctx, s, controllerutil.RemoveFinalizer))
	}
	conditions := s.Registry.Status.DeepCopy().Conditions[:0]
	progressing, available, ready := s.progressing(nil), s.availableCondition(), s.ready(nil)
	progressing.Message += ": " + waits
	if gap != "" {
		progressing.Message += "; " + gap
	}
	if writeErr := r.writeStatus(ctx, s, append(conditions, progressing, available, ready)); writeErr != nil {
		return reconcile.Result{}, errors.Join(err, client.IgnoreNotFound(writeErr))
	}
	return reconcile.Result{RequeueAfter: verdict.Soon}, err
}

// saveFirst has a registry that is being deleted run on, as if it were not, until its last
// backup is verified, and records that before anything goes.
func (r *Reconciler) saveFirst(ctx context.Context, s *scope) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(s.Registry, operatorv1alpha1.Finalizer) {
		return reconcile.Result{}, nil
	}
	s.savingFirst = true
	return r.drive(ctx, s, nil)
}

// forget drops what the operator holds in memory of a registry that goes.
func (r *Reconciler) forget(key client.ObjectKey) {
	metrics.Delete(key)
	r.outages.End(key)
	r.revisions.Forget(key.String())
	r.comparisons.Forget(key.String())
	r.silences.Forget(key.String())
}

// sweep removes what is left elsewhere of a registry that is gone, and settles its backups.
func (r *Reconciler) sweep(ctx context.Context, key client.ObjectKey) error {
	r.forget(key)
	err := removal.Sweep(ctx, r.HostCluster, key)
	_, failed := r.backupKind.Settle(ctx, r.HostCluster, key, fmt.Sprintf("there is no ClusterRegistry %s in this namespace", key.Name))
	return errors.Join(err, failed)
}

package clusterregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

// report turns what came of the stages into conditions, events, metrics and one
// patch of the status, and says when to reconcile again.
func (r *Reconciler) report(ctx context.Context, s *scope) (reconcile.Result, error) {
	conditions := s.conditions()
	s.advanceHistory(conditions)
	after, firstError := s.next()
	if firstError == nil {
		s.Registry.Status.ObservedGeneration = s.Registry.Generation
	}
	if err := r.writeStatus(ctx, s, conditions); err != nil {
		return reconcile.Result{}, err
	}
	if firstError != nil {
		return reconcile.Result{}, firstError
	}
	return reconcile.Result{RequeueAfter: min(after, cmp.Or(r.ResyncPeriod, verdict.Vigil))}, nil
}

// next returns when to reconcile again at the latest, and the error of the first stage
// that has one. Those of the controller and of backups are tried again after the backstop: as
// errors of the reconcile they would have the whole registry wait for longer and longer, an upgrade
// that is under way, too.
func (s *scope) next() (after time.Duration, err error) {
	after = verdict.Vigil
	for _, kind := range append(s.allParts(), operatorv1alpha1.ConditionProgressing) {
		v, _ := s.said(kind)
		if err == nil && kind != operatorv1alpha1.ConditionControllerReady && kind != operatorv1alpha1.ConditionBackupReady {
			err = v.Err
		}
		switch {
		case v.After > 0:
			after = min(after, v.After)
		case !v.Complete():
			after = min(after, verdict.Backstop)
		}
	}
	if err == nil {
		err = s.operation.Err
	}
	switch {
	case s.operation.After > 0:
		after = min(after, s.operation.After)
	case !s.operation.Complete():
		after = min(after, verdict.Backstop)
	}
	if !s.retraction.Complete() {
		after = min(after, cmp.Or(s.retraction.After, verdict.Backstop))
	}
	if s.available.After > 0 {
		after = min(after, s.available.After)
	}
	return after, err
}

// writeStatus sets conditions, emits events of those that changed, and patches the
// status if it did.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope, conditions []metav1.Condition) error {
	status := &s.Registry.Status
	var changed []metav1.Condition
	for _, condition := range conditions {
		condition.ObservedGeneration = s.Registry.Generation
		condition.Message = verdict.Bounded(condition.Message)
		old := meta.FindStatusCondition(status.Conditions, condition.Type)
		if telling(old, condition) {
			changed = append(changed, condition)
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	if s.Deleting() == "" && len(s.Registry.Spec.Controllers.Functions()) == 0 {
		meta.RemoveStatusCondition(&status.Conditions, operatorv1alpha1.ConditionControllerReady)
	}
	if s.Deleting() == "" && s.Registry.Spec.Backup == nil {
		meta.RemoveStatusCondition(&status.Conditions, operatorv1alpha1.ConditionBackupReady)
	}
	measure(s)
	if equality.DeepEqual(s.Before, *status) {
		return nil
	}
	before, after := &operatorv1alpha1.ClusterRegistry{}, &operatorv1alpha1.ClusterRegistry{}
	before.Name, before.Namespace, before.Status = s.Registry.Name, s.Registry.Namespace, s.Before
	after.Name, after.Namespace, after.Status = s.Registry.Name, s.Registry.Namespace, *status
	before.Spec, after.Spec = s.Registry.Spec, s.Registry.Spec
	if err := r.Client.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	if status.Operation != nil && after.Status.Operation == nil {
		// What is not recorded would begin again in each reconcile.
		err := errors.New("the host cluster does not store status.operation, so no upgrade and no other operation can proceed: its CustomResourceDefinition clusterregistries.operator.clusterregistry.io is of an earlier release than the operator; apply the one of the operator's release")
		s.Event(corev1.EventTypeWarning, operatorv1alpha1.ReasonInternalError, operatorv1alpha1.ConditionProgressing, "%s", err)
		return err
	}
	for _, condition := range changed {
		s.tell(condition)
	}
	return nil
}

// telling reports whether a change of a condition is worth an event. The sums of
// the others tell less often than these do.
func telling(old *metav1.Condition, now metav1.Condition) bool {
	same := old != nil && old.Status == now.Status
	switch now.Type {
	case operatorv1alpha1.ConditionAvailable:
		return !same && now.Status != metav1.ConditionUnknown && now.Reason != operatorv1alpha1.ReasonDeleting
	case operatorv1alpha1.ConditionReady:
		return !same && (old != nil || now.Status == metav1.ConditionTrue)
	case operatorv1alpha1.ConditionProgressing:
		return old != nil && old.Reason != now.Reason
	}
	return now.Status != metav1.ConditionUnknown && (!same || old.Reason != now.Reason)
}

// alarming are the reasons that are a warning whatever the status of their condition.
var alarming = []string{operatorv1alpha1.ReasonOOMKilled, operatorv1alpha1.ReasonObjectsHeld, operatorv1alpha1.ReasonRangesUnknown, operatorv1alpha1.ReasonUpgradeBlocked, operatorv1alpha1.ReasonSnapshotFailed}

// tell emits the event of a condition that changed. In an upgrade parts are
// expected to be replaced, and only what blocks it is a warning.
func (s *scope) tell(condition metav1.Condition) {
	kind := corev1.EventTypeNormal
	if condition.Status == metav1.ConditionFalse && s.Installed() && condition.Type != operatorv1alpha1.ConditionProgressing && s.Registry.Status.Operation == nil ||
		condition.Type == operatorv1alpha1.ConditionAvailable && condition.Status == metav1.ConditionFalse || condition.Reason == operatorv1alpha1.ReasonNoSpace && condition.Type == operatorv1alpha1.ConditionEtcdReady || slices.Contains(alarming, condition.Reason) {
		kind = corev1.EventTypeWarning
	}
	s.Event(kind, condition.Reason, condition.Type, "%s is %s: %s", condition.Type, condition.Status, condition.Message)
}

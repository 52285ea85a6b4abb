package clusterregistry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Objects that the host cluster stores and the Go type can't decode. Only their writers can
// correct them, and are told in the status, which is written as a tree. What such a registry
// runs stays as it is.

// atOnceTold bounds how many such backups are reported in one reconcile: anyone who may create
// backups may create many.
const atOnceTold = 10

// unread is what becomes of a registry that could not be observed.
func (r *Reconciler) unread(ctx context.Context, err error) (reconcile.Result, error) {
	undecodable := &informers.UndecodableError{}
	if !errors.As(err, &undecodable) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: verdict.Resync}, describe(ctx, r.HostCluster, undecodable,
		metav1.Condition{Type: operatorv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: err.Error() + "; until then nothing of this registry is changed"},
		metav1.Condition{Type: operatorv1alpha1.ConditionAvailable, Status: metav1.ConditionUnknown, Message: err.Error()})
}

// tellUndecodable has backups that can't be decoded say so, and those that can no longer.
// Whatever becomes of that, the registry is driven further.
func (s *scope) tellUndecodable(ctx context.Context, undecodable []*operatorv1alpha1.ClusterRegistryBackup) {
	if s.PausedUntil() != "" {
		return
	}
	for _, b := range undecodable[:min(atOnceTold, len(undecodable))] {
		err := informers.Read(ctx, s.Live, client.ObjectKeyFromObject(b), &operatorv1alpha1.ClusterRegistryBackup{})
		if why := (*informers.UndecodableError)(nil); errors.As(err, &why) {
			err = describe(ctx, s.HostCluster, why, metav1.Condition{Type: operatorv1alpha1.BackupConditionDecodable, Status: metav1.ConditionFalse, Message: err.Error() + "; until then nothing is done about this backup, and no encryption key is removed"})
		}
		if client.IgnoreNotFound(err) != nil {
			logf.FromContext(ctx).Error(err, "report a ClusterRegistryBackup that can't be decoded; the operator will retry", "backup", b.Name)
		}
	}
	for _, b := range s.backups.all {
		if err := enter(ctx, s.Client, b, func(b *operatorv1alpha1.ClusterRegistryBackup) {
			meta.RemoveStatusCondition(&b.Status.Conditions, operatorv1alpha1.BackupConditionDecodable)
		}); client.IgnoreNotFound(err) != nil {
			logf.FromContext(ctx).Error(err, "report a ClusterRegistryBackup that can be decoded again; the operator will retry", "backup", b.Name)
		}
	}
}

// describe sets conditions of an object that can't be decoded.
func describe(ctx context.Context, host operand.HostCluster, why *informers.UndecodableError, conditions ...metav1.Condition) error {
	before, after := why.Object, why.Object.DeepCopy()
	var old, now []metav1.Condition
	if tree, _, _ := unstructured.NestedFieldNoCopy(before.Object, "status", "conditions"); tree != nil {
		// If these are what can't be decoded, others take their place.
		if text, err := json.Marshal(tree); err != nil || json.Unmarshal(text, &old) != nil {
			old = nil
		}
	}
	now = append(now, old...)
	for _, condition := range conditions {
		condition.Reason, condition.ObservedGeneration, condition.Message = operatorv1alpha1.ReasonUndecodable, before.GetGeneration(), verdict.Bounded(condition.Message)
		meta.SetStatusCondition(&now, condition)
	}
	if apiequality.Semantic.DeepEqual(old, now) {
		return nil
	}
	var list []any
	for i := range now {
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&now[i])
		if err != nil {
			return err
		}
		list = append(list, tree)
	}
	if err := unstructured.SetNestedSlice(after.Object, list, "status", "conditions"); err != nil {
		after.Object["status"] = map[string]any{"conditions": list}
	}
	if err := host.Client.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write the status of %s %s/%s: %w", before.GetKind(), before.GetNamespace(), before.GetName(), err)
	}
	host.Events.Eventf(before, nil, corev1.EventTypeWarning, operatorv1alpha1.ReasonUndecodable, "Decode", "%s", conditions[0].Message[:min(1000, len(conditions[0].Message))])
	return nil
}

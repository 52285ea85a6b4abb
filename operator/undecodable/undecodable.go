// Package undecodable reports objects that the host cluster stores and the Go type can't decode.
// Only their writers can correct them, and are told in the status, which is written as a tree.
package undecodable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Registry is what becomes of a registry that could not be observed, and when to reconcile it
// again. What it runs stays as it is; registration says what is found, or was done, of its
// registration with the host cluster.
func Registry(ctx context.Context, host operand.HostCluster, err error, registration verdict.Verdict) (time.Duration, error) {
	why := &informers.UndecodableError{}
	if !errors.As(err, &why) {
		if !registration.Complete() {
			err = fmt.Errorf("%w; besides, %s", err, registration.Message)
		}
		return 0, errors.Join(err, registration.Err)
	}
	conditions := []metav1.Condition{{Type: operatorv1alpha1.ConditionReady, Status: metav1.ConditionFalse}, {Type: operatorv1alpha1.ConditionAvailable, Status: metav1.ConditionUnknown, Message: err.Error()}}
	after, message := verdict.Resync, err.Error()+"; until then nothing of this registry is changed"
	if !registration.Complete() {
		after, message = cmp.Or(registration.After, verdict.Backstop), message+"; besides, "+registration.Message
		conditions = append(conditions, metav1.Condition{Type: operatorv1alpha1.ConditionAPIServiceReady, Status: metav1.ConditionFalse, Reason: registration.Reason, Message: registration.Message})
	}
	conditions[0].Message = message
	return after, errors.Join(registration.Err, Describe(ctx, host, why, conditions...))
}

// Describe sets conditions of an object that can't be decoded, which is their reason if they have
// none.
func Describe(ctx context.Context, host operand.HostCluster, why *informers.UndecodableError, conditions ...metav1.Condition) error {
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
		condition.Reason, condition.ObservedGeneration, condition.Message = cmp.Or(condition.Reason, operatorv1alpha1.ReasonUndecodable), before.GetGeneration(), verdict.Bounded(condition.Message)
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

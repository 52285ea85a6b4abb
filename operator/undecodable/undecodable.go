// Package undecodable reports objects that the host cluster stores and the Go type can't decode.
// Only their writers can correct them, and are told in the status, which is written as a tree.
package undecodable

import (
	"context"
	"encoding/json"
	"fmt"

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

// Describe sets conditions of an object that can't be decoded.
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

package faults

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMatrixBackendDown leaves no node for a registry's only server. After a minute the
// registry is no longer registered, which frees the host: a condition, an event and a metric say
// so, and all is well again when there is a node. In "make test", e2e/integration has that with a
// host alone, and the metric of a condition is that of a unit test.
func TestMatrixBackendDown(t *testing.T) {
	e := framework.New(t).WithOperator()
	metrics := e.NewMetrics()
	registry := e.Sample("aggregated-single.yaml")
	e.Install(registry)
	e.WaitReady(registry)
	e.HostMaySuffer("the only server of an aggregated registry finds no node")
	uncordon := cordonAll(t, e)
	err := e.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(e.Namespace),
		client.MatchingLabels{operatorv1alpha1.LabelComponent: "server"}, client.GracePeriodSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	e.WaitCondition(registry, operatorv1alpha1.ConditionAPIServiceReady, metav1.ConditionFalse, operatorv1alpha1.ReasonBackendDown, "is created when a server answers")
	e.WaitCondition(registry, operatorv1alpha1.ConditionServerReady, metav1.ConditionFalse, operatorv1alpha1.ReasonReplicasNotReady, "can't be scheduled")
	e.Eventually("an event to warn of it", func(ctx context.Context) error {
		var events eventsv1.EventList
		if err := e.Client.List(ctx, &events, client.InNamespace(e.Namespace)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == operatorv1alpha1.ReasonBackendDown && event.Type == corev1.EventTypeWarning && strings.Contains(event.Note, "namespaces") {
				return nil
			}
		}
		return fmt.Errorf("none of %d does", len(events.Items))
	})
	e.Eventually("a metric to say so", func(ctx context.Context) error {
		samples, err := metrics.Read(ctx)
		if err != nil {
			return err
		}
		// An operator that has just become the leader has none until it has reconciled the registry.
		if sum := framework.Sum(samples, "clusterregistry_condition{", `namespace="`+e.Namespace+`"`, `reason="BackendDown"`, `type="APIServiceReady"`); sum != 1 {
			return fmt.Errorf("its value is %v", sum)
		}
		return nil
	})
	// kube-controller-manager tries a deletion that has failed again up to a minute later.
	released := metav1.Now()
	e.Eventually("the namespaces whose deletion hung to be gone", func(ctx context.Context) error {
		var namespaces corev1.NamespaceList
		if err := e.Client.List(ctx, &namespaces); err != nil {
			return err
		}
		for _, namespace := range namespaces.Items {
			if namespace.DeletionTimestamp.Before(&released) {
				return fmt.Errorf("%s is there", namespace.Name)
			}
		}
		return nil
	})
	uncordon(t.Context())
	e.WaitReady(registry)
}

// cordonAll keeps new pods from all nodes. It returns what lets them in again;
// the end of the test does so, too.
func cordonAll(t *testing.T, e *framework.Env) (uncordon func(context.Context)) {
	t.Helper()
	var nodes corev1.NodeList
	if err := e.Client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	set := func(ctx context.Context, unschedulable bool) {
		for i := range nodes.Items {
			patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable)
			if err := e.Client.Patch(ctx, nodes.Items[i].DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(func() { set(context.Background(), false) })
	set(t.Context(), true)
	return func(ctx context.Context) { set(ctx, false) }
}

package integration

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// testAggregation runs operators that differ in where registries may be a part of
// the host's API. One that may not gets nothing; one that was installed before
// stays registered with the host, and is not changed until it may again.
func testAggregation(t *testing.T, mine, other *site, host *framework.Host) {
	const group = "APIService/v1alpha1.clusterregistry.k8s.io"
	operator := framework.StartOperator(t, host, "--aggregated-namespaces="+mine.namespace)
	mine.apply("fleet", "{mode: Aggregated}")
	// A bare host does not reach the servers.
	mine.says("fleet", "APIServiceReady", "False", "NotAvailable")
	mine.holds("fleet", group)
	other.apply("fleet", "{mode: Aggregated}")
	r := other.says("fleet", "Ready", "False", "AggregationNotAllowed", "namespace "+other.namespace, "AGGREGATED_NAMESPACES")
	if made := other.objects("fleet"); len(r.Status.Inventory) > 0 || len(made) != 0 {
		t.Errorf("something is made of a registry that is not allowed: %v, %v", r.Status.Inventory, namesOf(made))
	}
	other.apply("own", "{mode: Independent}")
	other.ready("own")
	other.gone(other.deleted("fleet"))

	r = &operatorv1alpha1.ClusterRegistry{}
	mine.get("fleet", r)
	// It never was complete here, for want of a host that reaches it.
	before := r.DeepCopy()
	r.Status.History = []operatorv1alpha1.Transition{{Version: "v0.1.0", State: operatorv1alpha1.TransitionCompleted, StartTime: metav1.Now()}}
	if err := mine.Status().Patch(t.Context(), r, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	operator.Stop()
	operator = framework.StartOperator(t, host, "--aggregated-namespaces="+other.namespace)
	mine.says("fleet", "Progressing", "False", "AggregationNotAllowed", "nothing is changed until")
	mine.says("fleet", "APIServiceReady", "False", "NotAvailable", "mode Aggregated is not allowed in namespace "+mine.namespace, "keeps serving")
	if err := mine.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "fleet-server", Namespace: mine.namespace}}); err != nil {
		t.Fatal(err)
	}
	r = &operatorv1alpha1.ClusterRegistry{}
	mine.get("fleet", r)
	before = r.DeepCopy()
	r.Spec.Server.Replicas = 1
	if err := mine.Patch(t.Context(), r, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	replicas := func(ctx context.Context) (int32, error) {
		d := &appsv1.Deployment{}
		err := mine.Get(ctx, mine.key("fleet-server"), d)
		if err != nil {
			return 0, err
		}
		return *d.Spec.Replicas, nil
	}
	mine.eventually("the operator to have looked at the change", func(ctx context.Context) error {
		now := &operatorv1alpha1.ClusterRegistry{}
		if err := mine.Get(ctx, client.ObjectKeyFromObject(r), now); err != nil || now.Status.ObservedGeneration != r.Generation {
			return fmt.Errorf("generation %d, %d wanted: %w", now.Status.ObservedGeneration, r.Generation, err)
		}
		return nil
	})
	mine.holds("fleet", group+" -Service/fleet-server")
	if n, err := replicas(t.Context()); n != 2 || err != nil {
		t.Errorf("it is changed: %d servers, %v", n, err)
	}
	operator.Stop()

	operator = framework.StartOperator(t, host, "--aggregated-namespaces=*")
	mine.holds("fleet", group+" Service/fleet-server")
	mine.eventually("the change to be made", func(ctx context.Context) error {
		n, err := replicas(ctx)
		if err == nil && n != 1 {
			err = fmt.Errorf("there are %d", n)
		}
		return err
	})
	mine.gone(mine.deleted("fleet"))
	operator.Stop()
}

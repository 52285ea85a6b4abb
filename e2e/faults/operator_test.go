package faults

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMatrixOperatorKilled ends the operator as a power cut would in the middle of an
// installation and expects the next one to go on: while etcd forms, and at each of the
// other stages on the newest host. In "make test", e2e/integration kills it at random
// moments, and e2e/reliability in an upgrade.
func TestMatrixOperatorKilled(t *testing.T) {
	stages := []string{operatorv1alpha1.ConditionEtcdReady}
	if framework.Full() {
		stages = append(stages, operatorv1alpha1.ConditionCertificatesReady, operatorv1alpha1.ConditionServerReady, operatorv1alpha1.ConditionAPIServiceReady)
	}
	for _, stage := range stages {
		t.Run(stage, func(t *testing.T) {
			e := framework.New(t).WithOperator()
			registry := e.Sample("aggregated-single.yaml")
			e.Install(registry)
			e.Eventually("the installation to get to "+stage, func(ctx context.Context) error {
				if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
					return err
				}
				if c := meta.FindStatusCondition(registry.Status.Conditions, stage); c == nil || c.Status == metav1.ConditionUnknown {
					return fmt.Errorf("its conditions are %v", registry.Status.Conditions)
				}
				return nil
			})
			if err := e.KillOperator(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.WaitReady(registry)
			if history := registry.Status.History; len(history) != 1 || history[0].State != operatorv1alpha1.TransitionCompleted {
				t.Errorf("the history is %+v", history)
			}
		})
	}
}

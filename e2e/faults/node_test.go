package faults

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// rate is how many requests clients send in a second.
const rate = 50

// TestNodeLost cuts the power of a node with a member of etcd. Writes go on, the
// registry says what is missing, and nothing that was acknowledged is missing
// when the node is back.
func TestNodeLost(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := e.Sample("aggregated-ha.yaml")
	e.Install(registry)
	e.WaitReady(registry)
	var pod corev1.Pod
	if err := e.Get(t.Context(), registry.Name+"-etcd-0", &pod); err != nil {
		t.Fatal(err)
	}
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate)
	load.Settle(t)
	// A node may have a server, too.
	noticed := e.HostMaySuffer("kube-apiserver sends requests to a server on a node without power until the node counts as lost")
	e.Node("stop", pod.Spec.NodeName)
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonMembersNotReady, "2 of 3 etcd members ready", pod.Name)
	before := load.Acknowledged()
	load.Settle(t)
	e.Eventually("writes to go on without the node", func(context.Context) error {
		if now := load.Acknowledged(); now < before+2*rate {
			return fmt.Errorf("%d were acknowledged, %d before", now, before)
		}
		return nil
	})
	noticed()
	framework.Cluster(t, "node", "start", pod.Spec.NodeName)
	e.WaitReady(registry)
	load.Settle(t)
	report := load.Stop()
	t.Logf("a node was lost and came back: %s", report)
	for _, failure := range report.Failed[:min(5, len(report.Failed))] {
		t.Logf("for example: %s", failure)
	}
	e.Compare(registry, report)
	if got := registry.Status.Etcd.Ready; got != "3/3" {
		t.Errorf("etcd is %s", got)
	}
}

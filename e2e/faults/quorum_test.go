package faults

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMatrixQuorumLost takes the quorum of an etcd with three members: first by members that do
// not answer, which is no loss, whatever is approved, and then by emptied volumes. What is left is
// said, up to the revision that it has.
func TestMatrixQuorumLost(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := independent(e, 3)
	e.Install(registry)
	e.WaitReady(registry)
	load := framework.StartLoad(t, e.RegistryConfig(registry), rate)
	load.Settle(t)
	report := load.Stop()
	e.Compare(registry, report)

	members := registry.Status.Etcd.Members
	process := func(name string) framework.Process {
		return e.Process("--name="+name, "--initial-cluster-token="+e.Namespace+"/"+registry.Name)
	}
	for _, member := range members[1:] {
		if err := process(member.Name).Pause(); err != nil {
			t.Fatal(err)
		}
	}
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonMembersNotReady)
	// They may serve those who reach them, so no approval begins a recovery.
	cluster := registry.Status.Etcd.ClusterID
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Recovery = &operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromMember, Name: members[0].Name, AcceptDataLossUpTo: 1 << 40, ApprovedFor: cluster}
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonMembersNotReady)
	if registry.Status.Recovery != nil {
		t.Errorf("members that do not answer are taken for lost: %+v", registry.Status.Recovery)
	}
	for _, member := range members[1:] {
		if err := process(member.Name).Kill(); err != nil {
			t.Fatal(err)
		}
	}
	e.WaitReady(registry)
	e.Compare(registry, report)
	if registry.Status.Recovered != nil || registry.Status.Etcd.ClusterID != cluster {
		t.Errorf("members that did not answer were given up: %+v, etcd %+v", registry.Status.Recovered, registry.Status.Etcd)
	}

	e.LoseMembers(registry, members[1:])
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonQuorumLost,
		"the data of 2 of 3 members is gone", members[1].Name, "Left is the data of "+members[0].Name+" up to revision ", "there is no verified backup", "Keep all volumes")
	e.Eventually("what is left to be said", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		left := registry.Status.Recovery
		if left == nil || len(left.Members) != 3 || left.Members[0].DataGone || left.Members[0].Revision == 0 || !left.Members[1].DataGone || !left.Members[2].DataGone || left.LastRevision < left.Members[0].Revision {
			return fmt.Errorf("it is %+v", left)
		}
		return nil
	})
	t.Logf("left is %+v", registry.Status.Recovery)
}

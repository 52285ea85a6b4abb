package faults

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestMatrixRecoveryOfNodes recovers an etcd with three members after the nodes of two were lost
// for good under load, with all that was on them: their Nodes are deleted, by which the volumes
// there count as gone. The data of the member that is left has all that was acknowledged up to
// its revision; it serves while there are no other nodes, and grows when there are.
func TestMatrixRecoveryOfNodes(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := independent(e, 3)
	registry.Spec.Etcd.ReplaceAfter = &metav1.Duration{} // a person decides
	e.Install(registry)
	e.WaitReady(registry)
	cluster, survivor := registry.Status.Etcd.ClusterID, atEndpoint(t, e, registry)
	volumes, nodes := map[string]string{}, map[string]string{}
	for _, member := range registry.Status.Etcd.Members {
		if member.Name != survivor {
			volumes[member.Name], nodes[member.Name] = claimOf(t, e, member.Name).Spec.VolumeName, nodeOf(t, e, member.Name)
		}
	}
	writers := framework.StartWriters(t, e.RegistryConfig(registry), "before", 20)
	e.Eventually("writes", func(ctx context.Context) error {
		list, err := clusters(ctx, e, registry)
		if err == nil && len(list) < 500 {
			err = fmt.Errorf("there are %d clusters", len(list))
		}
		return err
	})

	returned := e.HostMaySuffer("two of its nodes are gone, and what they ran comes up elsewhere")
	var others []func()
	for _, node := range nodes {
		others = append(others, e.LoseNode(node))
	}
	e.WaitCondition(registry, operatorv1alpha1.ConditionEtcdReady, metav1.ConditionFalse, operatorv1alpha1.ReasonQuorumLost,
		"the data of 2 of 3 members is gone", "is on a node that was deleted", "Left is the data of "+survivor)
	writers.Wait()
	written, highest := writers.Acknowledged()
	left := registry.Status.Recovery
	t.Logf("%d writes were acknowledged, up to revision %d; left is %+v", written, highest, left)

	approved := time.Now()
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Recovery = &operatorv1alpha1.Recovery{From: operatorv1alpha1.RecoverFromMember, Name: survivor, AcceptDataLossUpTo: 1 << 40, ApprovedFor: left.ID}
	})
	e.Eventually("etcd to be recovered", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		if registry.Status.Recovered == nil {
			return fmt.Errorf("the recovery is %+v", registry.Status.Recovery)
		}
		return nil
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionAvailable, metav1.ConditionTrue, operatorv1alpha1.ReasonAvailable)
	t.Logf("recovered: %+v; clients are served %s after the approval", registry.Status.Recovered, time.Since(approved).Round(time.Second))
	if recovered := registry.Status.Recovered; recovered.ID != left.ID || recovered.Name != survivor || registry.Status.Etcd.ClusterID == cluster {
		t.Fatalf("recovered is %+v, of etcd %+v", recovered, registry.Status.Etcd)
	}
	checkRecovered(t, e, registry, writers, highest, registry.Status.Recovered.Revision)

	for _, another := range others {
		another()
	}
	returned()
	e.WaitRecovered(registry, 3)
	stored, err := clusters(t.Context(), e, registry)
	if err != nil {
		t.Fatal(err)
	}
	writers.CheckPrefix(t, stored, registry.Status.Recovered.Revision)
	if _, is := stored["after-the-recovery"]; !is {
		t.Error("what was written after the recovery is lost")
	}
	for _, name := range volumes {
		retained(t, e, name)
	}
}

// atEndpoint returns the member on the node by which clients reach a registry, or any where none is
// there: that node is to stay.
func atEndpoint(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) string {
	t.Helper()
	endpoint, err := url.Parse(registry.Status.Endpoint.URL)
	if err != nil {
		t.Fatal(err)
	}
	members := registry.Status.Etcd.Members
	for _, member := range members {
		var node corev1.Node
		if err := e.Client.Get(t.Context(), client.ObjectKey{Name: nodeOf(t, e, member.Name)}, &node); err != nil {
			t.Fatal(err)
		}
		for _, address := range node.Status.Addresses {
			if address.Address == endpoint.Hostname() {
				return member.Name
			}
		}
	}
	return members[1].Name
}

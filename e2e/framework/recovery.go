package framework

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// LoseMembers empties the volumes of etcd members of a registry, all before etcd ends in the
// first of their containers: the guard then refuses each.
func (e *Env) LoseMembers(registry *operatorv1alpha1.ClusterRegistry, members []operatorv1alpha1.EtcdMember) {
	e.t.Helper()
	var processes []Process
	for _, member := range members {
		// They are found before: etcd looks at its directories every 30 seconds, and ends
		// when they are gone.
		processes = append(processes, e.Process("--name="+member.Name, "--initial-cluster-token="+e.Namespace+"/"+registry.Name))
	}
	for _, member := range members {
		pod := &corev1.Pod{}
		if err := e.Get(e.t.Context(), member.Name, pod); err != nil {
			e.t.Fatal(err)
		}
		e.EmptyVolume(pod.Spec.NodeName, "data-"+member.Name)
	}
	for _, process := range processes {
		if err := process.Kill(); err != nil {
			e.t.Fatal(err)
		}
	}
}

// LoseNode takes a node away for good: it is cut off without a goodbye, nothing of what is on its
// volumes is left, and its Node is deleted. The one that is returned brings up another one of its
// name, and so does the end of the test.
func (e *Env) LoseNode(name string) (another func()) {
	e.t.Helper()
	e.Node("stop", name)
	Cluster(e.t, "node", "wipe", name)
	if err := e.Client.Delete(e.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		e.t.Fatal(err)
	}
	return func() { Cluster(e.t, "node", "start", name) }
}

// Recovered returns why an etcd has not been recovered from a lost quorum, and grown to so many
// members since; nil when it has.
func Recovered(registry *operatorv1alpha1.ClusterRegistry, members int32) error {
	status := registry.Status
	if want := fmt.Sprintf("%d/%d", members, members); status.Recovered == nil || status.Recovery != nil || status.Etcd.Ready != want || status.Operation != nil {
		return fmt.Errorf("etcd is %s ready, the operation %+v, the recovery %+v", status.Etcd.Ready, status.Operation, status.Recovery)
	}
	return nil
}

// WaitRecovered waits until an etcd that is recovered has all its members, which hold the same
// data, and the registry is Ready; and reads it.
func (e *Env) WaitRecovered(registry *operatorv1alpha1.ClusterRegistry, members int32) {
	e.t.Helper()
	e.Eventually(fmt.Sprintf("the recovered etcd to have %d members", members), func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		return Recovered(registry, members)
	})
	e.WaitReady(registry)
	e.WaitSameData(registry)
}

package upgrade

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// reign is how long the operator's leader works before it is killed. The next one
// has to wait for the Lease to expire, which is no part of it: kills that follow
// faster than that would test only that an operator that never runs does nothing.
const reign = 10 * time.Second

// TestMatrixOperatorKilled upgrades under the same load while the operator's leader
// is killed again and again, wherever it is.
func TestMatrixOperatorKilled(t *testing.T) {
	e := framework.New(t).WithOperator()
	registry := install(t, e, "aggregated-ha.yaml", nil)
	clients := framework.StartLoad(t, e.RegistryConfig(registry), rate, load()...)
	clients.Settle(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	kills := make(chan int)
	go func() { kills <- e.KillOperatorLeader(ctx, reign) }()
	for _, release := range steps(t)[1:] {
		e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
			spec.Version = operatorv1alpha1.Version(release.Version)
		})
		waitSteps(e, registry)
		e.WaitReady(registry)
		if registry.Status.Version != release.Version {
			t.Errorf("it is ready with %s: %+v", registry.Status.Version, registry.Status.History[0])
		}
		checkRuns(t, registry, release.Etcd)
	}
	stop()
	times := <-kills
	t.Logf("the operator's leader was killed %d times", times)
	if times < 2 {
		t.Errorf("the operator's leader was killed only %d times: nothing was tested", times)
	}
	finish(t, e, registry, clients)
}

// waitSteps waits for the end of an upgrade, with patience for every step of it.
func waitSteps(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	step := func() string {
		if upgrade := registry.Status.Operation; upgrade != nil {
			return string(upgrade.Phase) + " " + upgrade.Progress
		}
		return ""
	}
	over := func() bool {
		return registry.Status.Version == string(registry.Spec.Version) && registry.Status.Operation == nil
	}
	for !over() {
		last := step()
		e.Eventually(fmt.Sprintf("the upgrade to be further than %q", last), func(ctx context.Context) error {
			if err := e.Get(ctx, registry.Name, registry); err != nil {
				return err
			}
			if step() == last && !over() {
				return fmt.Errorf("its status is %+v", registry.Status.Operation)
			}
			return nil
		})
	}
}

func checkRuns(t *testing.T, registry *operatorv1alpha1.ClusterRegistry, etcd string) {
	t.Helper()
	if registry.Status.EtcdVersion != etcd || registry.Status.Etcd.Ready != "3/3" {
		t.Errorf("etcd is %s, %s", registry.Status.EtcdVersion, registry.Status.Etcd.Ready)
	}
}

// TestMatrixLeaderLost cuts the power of the node with etcd's leader in the middle of an
// upgrade. The upgrade waits for it and goes on; no write is lost. Requests that
// the host has sent to that node fail until it notices.
func TestMatrixLeaderLost(t *testing.T) {
	e := framework.New(t).WithOperator()
	releases := steps(t)
	before, to := releases[len(releases)-2], releases[len(releases)-1]
	registry := install(t, e, "aggregated-ha.yaml", func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Version = operatorv1alpha1.Version(before.Version)
	})
	clients := framework.StartLoad(t, e.RegistryConfig(registry), rate/2, load()...)
	clients.Settle(t)
	clients.Mark("lost")
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Version = operatorv1alpha1.Version(to.Version) })
	waitPhase(e, registry, operatorv1alpha1.PhaseEtcd)
	var pod corev1.Pod
	if err := e.Get(t.Context(), e.EtcdLeader(registry), &pod); err != nil {
		t.Fatal(err)
	}
	noticed := e.HostMaySuffer("kube-apiserver sends requests to a server on a node without power until the node counts as lost")
	e.Node("stop", pod.Spec.NodeName)
	lost := time.Now()
	e.Eventually("requests no longer to fail", func(context.Context) error {
		before := clients.Failures()
		settle(t, clients, 5)
		if now := clients.Failures(); now > before {
			return fmt.Errorf("%d more failed", now-before)
		}
		return nil
	})
	t.Logf("%s after the node was lost, no request failed any more", time.Since(lost).Round(time.Second))
	noticed()
	clients.Mark("noticed")
	settle(t, clients, 5)
	clients.Mark("back")
	framework.Cluster(t, "node", "start", pod.Spec.NodeName)
	e.WaitReady(registry)
	checkRuns(t, registry, to.Etcd)
	clients.Settle(t)
	report := clients.Stop()
	t.Logf("%s", report)
	for _, phase := range report.Phases {
		if phase.Name == "noticed" && phase.Failed > 0 {
			t.Errorf("requests fail without the node: %s", phase)
		}
	}
	for i, failure := range report.Failed {
		if i < 5 || i >= len(report.Failed)-5 {
			t.Logf("for example: %s", failure)
		}
	}
	e.Compare(registry, report)
}

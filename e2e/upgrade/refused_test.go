package upgrade

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestSingle upgrades a registry with one etcd member. It does nothing while it is paused,
// says beforehand that it will be down, and refuses to go back afterwards.
func TestSingle(t *testing.T) {
	e := framework.New(t).WithOperator()
	releases := steps(t)
	first, second := releases[0].Version, releases[1].Version
	registry := install(t, e, "aggregated-single.yaml", nil)
	const perSecond = 20
	clients := framework.StartLoad(t, e.RegistryConfig(registry), perSecond, framework.Pending(10*perSecond), framework.Rewritten())

	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Paused, spec.Version = true, operatorv1alpha1.Version(second)
	})
	e.WaitCondition(registry, operatorv1alpha1.ConditionProgressing, metav1.ConditionFalse, operatorv1alpha1.ReasonPaused)
	if registry.Status.Operation != nil {
		t.Errorf("paused, and upgraded: %+v", registry.Status.Operation)
	}
	clients.Mark("etcd is replaced")
	replaced := e.HostMaySuffer("the only member of an aggregated registry's etcd is replaced")
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Paused = false })
	e.WaitReady(registry)
	replaced()
	refused(t, e, registry, first, second+" -> "+first+" is a downgrade, which is not possible: set spec.version back to "+second)
	clients.Mark("after")
	settle(t, clients, 5)
	report := clients.Stop()
	t.Logf("%s", report)
	for _, phase := range report.Phases {
		if phase.Name == "etcd is replaced" {
			t.Logf("the outage of a single member: %d requests failed, the slowest took %s", phase.Failed, phase.Slowest.Round(time.Millisecond))
		} else if phase.Failed > 0 {
			t.Errorf("requests failed while no member was replaced: %s", phase)
		}
	}
	e.Compare(registry, report)
	checkUpgraded(t, e, registry, releases[1])
	checkEvent(t, e, registry, string(operatorv1alpha1.PhaseSnapshot), "the registry is unavailable for some seconds while it is replaced")
	if history := registry.Status.History; len(history) != 2 {
		t.Errorf("the history is %+v", history)
	}
}

// refused expects that a version is refused at once, with a sentence.
func refused(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, to, says string) {
	t.Helper()
	asked := registry.DeepCopy()
	asked.Spec.Version = operatorv1alpha1.Version(to)
	err := e.Client.Patch(t.Context(), asked, client.MergeFrom(registry))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.version") || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v", to, err)
	}
}

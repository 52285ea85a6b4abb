package upgrade

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestOperator upgrades the operator, and not the registry: a newer one on a
// registry of an older release changes nothing until it is asked to. An older one
// that meets a newer registry says so, and changes nothing.
func TestOperator(t *testing.T) {
	e := framework.New(t).WithOperator()
	newer, older := framework.FindImage(t, "clusterregistry-operator"), framework.TaggedImage(t, "clusterregistry-operator", steps(t)[0].Version)
	t.Cleanup(func() { e.OperatorImage(newer) })
	releases := steps(t)

	e.OperatorImage(older)
	registry := install(t, e, "aggregated-single.yaml", nil)
	before := pods(t, e, registry)

	e.OperatorImage(newer)
	waitLook(e, registry)
	e.WaitReady(registry)
	if after := pods(t, e, registry); !maps.Equal(after, before) {
		t.Errorf("a newer operator has replaced pods: %v, before %v", after, before)
	}
	replaced := e.HostMaySuffer("the only member of an aggregated registry's etcd is replaced")
	upgrade(t, e, registry, releases[1].Version)
	replaced()
	before = pods(t, e, registry)

	e.OperatorImage(older)
	waitLook(e, registry)
	e.WaitCondition(registry, operatorv1alpha1.ConditionVersionSupported, metav1.ConditionFalse, operatorv1alpha1.ReasonVersionUnknown, "are of "+releases[1].Version+", which this operator does not know")
	if after := pods(t, e, registry); !maps.Equal(after, before) {
		t.Errorf("an older operator has replaced pods: %v, before %v", after, before)
	}
	if registry.Status.Version != releases[1].Version {
		t.Errorf("the status says that %q runs", registry.Status.Version)
	}

	e.OperatorImage(newer)
	e.WaitReady(registry)
	if after := pods(t, e, registry); !maps.Equal(after, before) {
		t.Errorf("the newer operator has replaced pods when it came back: %v, before %v", after, before)
	}
}

// pods returns the UIDs of those of a registry's pods that run, by name.
func pods(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, which ...client.ListOption) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	for _, pod := range e.Pods(registry, which...) {
		if pod.Status.Phase == corev1.PodRunning {
			out[pod.Name] = pod.UID
		}
	}
	return out
}

// waitLook edits what changes nothing, and waits until the operator has looked at
// the registry since.
func waitLook(e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Server.ProgressDeadlineSeconds++
	})
	e.Eventually("the operator to look at the registry", func(ctx context.Context) error {
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(registry), registry); err != nil {
			return err
		}
		if registry.Status.ObservedGeneration != registry.Generation {
			return fmt.Errorf("it has looked at generation %d of %d", registry.Status.ObservedGeneration, registry.Generation)
		}
		return nil
	})
}

package reliability

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestCore has one registry go through the core cells, one after the other.
func TestCore(t *testing.T) { through(t, core()) }

// TestCells has registries go through all cells, for which there must be five nodes. Those of
// an upgrade begin with a registry of their own each, since there is no return to the release
// before.
func TestCells(t *testing.T) {
	for _, members := range []int32{3, 1, 5} {
		var rest []cell
		for _, c := range matrix(members) {
			if c.operation.name == upgrade.name {
				t.Run(c.id(), func(t *testing.T) { through(t, []cell{c}) })
			} else {
				rest = append(rest, c)
			}
		}
		t.Run(fmt.Sprintf("%d members", members), func(t *testing.T) { through(t, rest) })
	}
}

// through has one registry go through cells, as far as it gets: one that a cell has left
// broken would fail the others, too.
func through(t *testing.T, cells []cell) {
	var left []cell
	for _, c := range cells {
		if c.passed() {
			t.Logf("%s: passed before at this commit, in %s; remove that to repeat it", c, c.kept())
			continue
		}
		left = append(left, c)
	}
	if len(left) == 0 {
		return
	}
	e := framework.New(t).WithOperator()
	registry := e.Sample("aggregated-ha.yaml")
	registry.Spec.Etcd.Replicas = left[0].members
	registry.Spec.Etcd.ReplaceAfter = &metav1.Duration{Duration: 10 * time.Second}
	registry.Spec.Version = operatorv1alpha1.Version(newest(t).Version)
	if left[0].operation.name == upgrade.name {
		registry.Spec.Version = operatorv1alpha1.Version(before(t).Version)
	}
	e.Install(registry)
	e.WaitReady(registry)
	for _, c := range left {
		ok := t.Run(c.id(), func(t *testing.T) { c.keep(t, c.run(t, e.In(t), registry)) })
		if !ok {
			t.Fatalf("%s has failed, and the cells after it were not run on this registry", c)
		}
		if to := c.operation.target(c.members); to != c.members {
			e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Etcd.Replicas = c.members })
			(&stage{t: t, e: e, registry: registry}).complete()
		}
	}
}

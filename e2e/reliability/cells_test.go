package reliability

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// TestCore has one registry go through the core cells, one after the other.
func TestCore(t *testing.T) {
	rate := coreRate
	if framework.Full() {
		rate = fullRate
	}
	through(t, core(), rate)
}

// TestCells has registries go through all cells, for which there must be five nodes. Where a
// cell fails, the ones after it continue on another registry. E2E_CELLS selects those under one
// fault, with one number of members, as in "disk full/3", and "-run" single ones;
// E2E_UNMEASURED=1 leaves out those that were measured, at whatever commit.
func TestCells(t *testing.T) {
	all := cells()
	if selection := os.Getenv("E2E_CELLS"); selection != "" {
		all = slices.DeleteFunc(all, func(c cell) bool { return c.selection() != selection })
		if len(all) == 0 {
			t.Fatalf("E2E_CELLS=%s selects no cell; there are %q", selection, selections())
		}
	}
	if os.Getenv("E2E_UNMEASURED") == "1" {
		measured, err := results(t)
		if err != nil {
			t.Fatal(err)
		}
		all = unmeasured(all, measured)
	}
	for _, group := range groups(all) {
		for len(group) > 0 {
			var rest []cell
			t.Run(group[0].registry(), func(t *testing.T) { rest = through(t, group, fullRate) })
			group = rest
		}
	}
}

// through has one registry go through cells until one has failed, which leaves the registry
// as it may, and returns those after it.
func through(t *testing.T, cells []cell, rate int) (rest []cell) {
	t.Helper()
	e := framework.New(t).WithOperator()
	registry := cells[0].install(t, e)
	for i, c := range cells {
		if !t.Run(c.id(), func(t *testing.T) { c.keep(t, c.run(t, e.In(t), registry, rate)) }) {
			t.Logf("%s has failed, and this registry goes through no other cell", c)
			return cells[i+1:]
		}
	}
	return nil
}

// install makes the registry that the cell is for.
func (c cell) install(t *testing.T, e *framework.Env) *operatorv1alpha1.ClusterRegistry {
	t.Helper()
	registry := e.Sample("aggregated-ha.yaml")
	if c.operation.independent {
		registry = e.Sample("independent-nodeport.yaml")
		registry.Spec.Server.Service.NodePort = 0
	}
	registry.Spec.Etcd.Replicas = c.members
	registry.Spec.Etcd.ReplaceAfter = &metav1.Duration{Duration: 10 * time.Second}
	registry.Spec.Version = operatorv1alpha1.Version(newest(t).Version)
	if c.operation.name == upgrade.name {
		registry.Spec.Version = operatorv1alpha1.Version(before(t).Version)
	}
	e.Install(registry)
	e.WaitReady(registry)
	return registry
}

// TestSelections has the parts of the ledger select all cells.
func TestSelections(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(framework.Root(t), "hack", "ledger", "parts.go"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, match := range regexp.MustCompile(`"([a-z' ]+/[1-9])"`).FindAllStringSubmatch(string(content), -1) {
		got = append(got, match[1])
	}
	want := selections()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("hack/ledger selects the cells\n%q, of\n%q", got, want)
	}
}

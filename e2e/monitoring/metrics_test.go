package monitoring

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/client/clientset/versioned"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/version"
)

// families are metrics by name.
type families map[string]*dto.MetricFamily

// add merges what was told at another time or by another server.
func (f families) add(more map[string]*dto.MetricFamily) {
	for name, family := range more {
		if f[name] == nil {
			f[name] = family
			continue
		}
		f[name].Metric = append(f[name].Metric, family.Metric...)
	}
}

// TestMetrics installs a registry, upgrades and deletes it, and compares all that
// the operator and the servers tell meanwhile with docs/reference/metrics.md. Queries of
// alerts and of the dashboard use nothing else ("make verify-alerts").
func TestMetrics(t *testing.T) {
	e := framework.New(t).WithOperator()
	metrics := e.NewMetrics()
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	registry := e.Sample("aggregated-ha.yaml")
	registry.Spec.Version = operatorv1alpha1.Version(releases[0].Version)
	e.Install(registry)
	e.WaitReady(registry)

	told := families{}
	tell := func(ctx context.Context) error {
		now, err := metrics.Families(ctx)
		told.add(now)
		return err
	}
	if err := tell(t.Context()); err != nil {
		t.Fatal(err)
	}
	use(t, e, registry)
	served := families{}
	for _, pod := range pods(t, e, registry, "server") {
		now, err := metrics.ServerFamilies(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		served.add(now)
	}
	kept := families{}
	for _, pod := range pods(t, e, registry, "etcd") {
		now, err := metrics.EtcdFamilies(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		kept.add(now)
	}

	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) {
		spec.Version = operatorv1alpha1.Version(releases[1].Version)
	})
	e.Eventually("the operator to tell of the upgrade", func(ctx context.Context) error {
		if err := tell(ctx); err != nil {
			return err
		}
		if told["clusterregistry_operation_phase_start_timestamp_seconds"] == nil {
			return errors.New("no metric has its phase")
		}
		return nil
	})
	e.WaitReady(registry)
	if err := tell(t.Context()); err != nil {
		t.Fatal(err)
	}

	known := documented(t)
	compare(t, known[operator], told)
	compare(t, known[servers], served)
	compare(t, known[etcd], kept)
	for name := range told {
		checkKnown(t, known, name)
	}
	for name := range served {
		checkKnown(t, known, name)
	}
	checkGone(t, e, registry, metrics, told)
}

// use has clients create, list and watch clusters.
func use(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) {
	t.Helper()
	clients, err := versioned.NewForConfig(e.RegistryConfig(registry))
	if err != nil {
		t.Fatal(err)
	}
	clusters := clients.ClusterregistryV1alpha1().Clusters()
	list, err := clusters.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := clusters.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
}

// pods returns the names of a component's pods.
func pods(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, component string) []string {
	t.Helper()
	var names []string
	for _, pod := range e.Pods(registry, client.MatchingLabels{operatorv1alpha1.LabelComponent: component}) {
		names = append(names, pod.Name)
	}
	if len(names) == 0 {
		t.Fatalf("the registry has no pods of the component %s", component)
	}
	return names
}

// compare looks for all metrics that are promised, with their types and labels.
func compare(t *testing.T, promised map[string]metric, told families) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(promised)) {
		want, family := promised[name], told[name]
		if family == nil || len(family.Metric) == 0 {
			t.Errorf("%s is promised, but nobody tells it", name)
			continue
		}
		if kind := strings.ToLower(family.GetType().String()); kind != want.kind {
			t.Errorf("%s is a %s, not the %s that is promised", name, kind, want.kind)
		}
		for _, sample := range family.Metric {
			if got := labels(sample); !slices.Equal(got, want.labels) {
				t.Errorf("%s has the labels %v, not the promised %v", name, got, want.labels)
				break
			}
		}
	}
}

func labels(sample *dto.Metric) []string {
	var names []string
	for _, pair := range sample.Label {
		names = append(names, pair.GetName())
	}
	slices.Sort(names)
	return names
}

// checkKnown fails for a metric of our own that is not documented.
func checkKnown(t *testing.T, known map[string]map[string]metric, name string) {
	t.Helper()
	if !strings.HasPrefix(name, "clusterregistry_") {
		return
	}
	for _, section := range known {
		if _, is := section[name]; is {
			return
		}
	}
	t.Errorf("%s is told, but not in docs/reference/metrics.md", name)
}

// checkGone deletes the registry and looks for metrics that still tell of it.
func checkGone(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry, metrics *framework.Metrics, before families) {
	t.Helper()
	if of(before, registry) == 0 {
		t.Fatal("no metric tells of the registry while it is there")
	}
	e.Remove(registry)
	after, err := metrics.Families(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if left := of(after, registry); left > 0 {
		t.Errorf("%d metrics tell of the registry, which is gone", left)
	}
}

// of counts the metrics that tell of a registry.
func of(told families, registry *operatorv1alpha1.ClusterRegistry) (count int) {
	for _, family := range told {
		for _, sample := range family.Metric {
			values := map[string]string{}
			for _, pair := range sample.Label {
				values[pair.GetName()] = pair.GetValue()
			}
			if values["namespace"] == registry.Namespace && values["name"] == registry.Name {
				count++
			}
		}
	}
	return count
}

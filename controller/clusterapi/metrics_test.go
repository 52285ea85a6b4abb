package clusterapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// TestMetrics follows a namespace through what its metrics tell apart.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	ignored := func(c *clusterv1.Cluster) { c.Labels[IgnoreLabel] = "true" }
	b := newBench(t, func(c *Config) { c.Metrics = metrics }, cluster("east"), cluster("west"), cluster("none", ignored),
		entryOf("west", "another", func(e *v1beta1.Cluster) { e.Spec.Manager.Name = "someone" }))
	if families, err := registry.Gather(); err != nil || len(families) > 0 {
		t.Errorf("a replica that does not lead has %v, %v", families, err)
	}
	expect := func(reason, want string, names ...string) {
		t.Helper()
		n := b.namespaces["a"]
		n.trouble = b.look(t.Context(), n)
		b.measure()
		for i := range names {
			names[i] = "clusterregistry_controller_cluster_api_" + names[i]
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
	b.must("east")
	b.must("west")
	b.failing[keyOf(cluster("east"))] = errors.New("away")
	expect("one is held, and one fails", `
# HELP clusterregistry_controller_cluster_api_failing_clusters Clusters of Cluster API that could not be brought into the registry several times in a row.
# TYPE clusterregistry_controller_cluster_api_failing_clusters gauge
clusterregistry_controller_cluster_api_failing_clusters 1
# HELP clusterregistry_controller_cluster_api_held_clusters Clusters of Cluster API that are not imported, or not fully, until a person resolves it, by why.
# TYPE clusterregistry_controller_cluster_api_held_clusters gauge
clusterregistry_controller_cluster_api_held_clusters{reason="EntryIncomplete"} 0
clusterregistry_controller_cluster_api_held_clusters{reason="EntryRefused"} 0
clusterregistry_controller_cluster_api_held_clusters{reason="HostCluster"} 0
clusterregistry_controller_cluster_api_held_clusters{reason="InvalidName"} 0
clusterregistry_controller_cluster_api_held_clusters{reason="NameTaken"} 1
clusterregistry_controller_cluster_api_held_clusters{reason="Undecodable"} 0
# HELP clusterregistry_controller_cluster_api_namespace_ready 1 while the Clusters of a namespace are read, 0 while they can't be, or may not be.
# TYPE clusterregistry_controller_cluster_api_namespace_ready gauge
clusterregistry_controller_cluster_api_namespace_ready{source_namespace="a"} 1
# HELP clusterregistry_controller_cluster_api_selected_clusters Clusters of Cluster API that are selected, in the namespaces that are read.
# TYPE clusterregistry_controller_cluster_api_selected_clusters gauge
clusterregistry_controller_cluster_api_selected_clusters 2
# HELP clusterregistry_controller_cluster_api_served 1 while the host cluster serves Clusters of Cluster API in the version that is read, 0 while it does not.
# TYPE clusterregistry_controller_cluster_api_served gauge
clusterregistry_controller_cluster_api_served 1
`)
	b.source.served = ServedOther
	expect("an older Cluster API", `
# HELP clusterregistry_controller_cluster_api_namespace_ready 1 while the Clusters of a namespace are read, 0 while they can't be, or may not be.
# TYPE clusterregistry_controller_cluster_api_namespace_ready gauge
clusterregistry_controller_cluster_api_namespace_ready{source_namespace="a"} 0
# HELP clusterregistry_controller_cluster_api_served 1 while the host cluster serves Clusters of Cluster API in the version that is read, 0 while it does not.
# TYPE clusterregistry_controller_cluster_api_served gauge
clusterregistry_controller_cluster_api_served 0
`, "namespace_ready", "served")
	b.source.served = ServedYes
	b.release(keyOf(cluster("west")))
	expect("the held one is gone, and Cluster API is back", `
# HELP clusterregistry_controller_cluster_api_namespace_ready 1 while the Clusters of a namespace are read, 0 while they can't be, or may not be.
# TYPE clusterregistry_controller_cluster_api_namespace_ready gauge
clusterregistry_controller_cluster_api_namespace_ready{source_namespace="a"} 1
`, "namespace_ready")
	if got := testutil.ToFloat64(metrics.held.WithLabelValues(HeldNameTaken)); got != 0 {
		t.Errorf("%v are held, none is", got)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("names that Prometheus would have otherwise: %v, %v", problems, err)
	}
}

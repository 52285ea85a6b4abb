package export

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// TestMetrics follows the profiles of a namespace through what its metrics tell apart.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, "")
	b.Metrics = metrics
	if families, err := registry.Gather(); err != nil || len(families) > 0 {
		t.Errorf("a replica that does not lead has %v, %v", families, err)
	}
	// The states that are not 0, and whether the namespace is as it should be.
	expect := func(reason, want string) {
		t.Helper()
		b.session.queue.Add(sweep)
		b.settle()
		var got []string
		for _, state := range []string{"published", "without_provider", "held", "kept", "terminating", "failing"} {
			if n := testutil.ToFloat64(metrics.objects.WithLabelValues("a", "ClusterProfile", state)); n != 0 {
				got = append(got, fmt.Sprintf("%v %s", n, state))
			}
		}
		got = append(got, fmt.Sprintf("ready %v", testutil.ToFloat64(metrics.ready.WithLabelValues("a", "ClusterProfile"))))
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s: %s, want %s", reason, text, want)
		}
	}
	b.put(member("east"), member("west", func(c *v1beta1.Cluster) { c.Spec.Access = nil }))
	expect("one has no access", "2 published, 1 without_provider, ready 1")
	if n := testutil.ToFloat64(metrics.writes.WithLabelValues("a", "ClusterProfile")); int(n) != len(b.writesOf()) || n == 0 {
		t.Errorf("%v writes are counted", n)
	}
	b.host.edit("west", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/wait"}) })
	b.host.remove("west")
	expect("one is terminating", "1 published, 1 terminating, ready 1")
	b.host.fail = func(string) error { return errors.New("away") }
	b.put(member("east", version1("v1.38.0")))
	b.pass(5 * time.Minute)
	expect("writes fail", "1 published, 1 terminating, 1 failing, ready 0")
	if n := testutil.ToFloat64(metrics.failures.WithLabelValues("a", "ClusterProfile")); n < persistent {
		t.Errorf("%v failures are counted", n)
	}
	b.host.fail = nil
	b.host.edit("west", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	b.pass(5 * time.Minute)
	expect("all is well again", "2 published, 1 without_provider, ready 1")
	metrics.forget(b.Target)
	families, err := registry.Gather()
	if err != nil || slices.ContainsFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "clusterregistry_controller_exports" }) {
		t.Errorf("a closed namespace has %v, %v", families, err)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("names that Prometheus would have otherwise: %v, %v", problems, err)
	}
}

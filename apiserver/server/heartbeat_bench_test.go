package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterregistry/operator/apiserver/storage/cluster"
)

// BenchmarkHeartbeats prints what a sign of life costs a server, without TLS, authorization and
// etcd, and the bytes that are stored for it and sent to each watch, by the way in which a reporter
// writes it: of a cluster with a CA, of which the health controller reports as well.
func BenchmarkHeartbeats(b *testing.B) {
	stored := newEncoded()
	d := newDeskOn(b, cluster.GuardedFieldsOff, stored.getter())
	if code, answer, _ := d.send(http.MethodPost, "v1beta1/clusters?fieldManager=person", plain, written("v1beta1", "west", 0, certificates(b, 1))); code != http.StatusCreated {
		b.Fatalf("%d %s", code, answer)
	}
	apply := func(path, manager, body string) {
		b.Helper()
		if code, answer, _ := d.send(http.MethodPatch, path+"?force=true&fieldManager="+manager, applyPatch, body); code >= http.StatusBadRequest {
			b.Fatalf("%s: %d %s", path, code, answer)
		}
	}
	report := func(reporter string, seen time.Time) string {
		conditions := conditionsOf(b, "Available", "Reachable", "ControlPlaneHealthy", "IdentityVerified")
		return fmt.Sprintf(`{"apiVersion":"clusterregistry.k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"west"},"status":{"conditions":%s,"version":{"kubernetes":"v1.37.1"},"reporters":[{"name":%q,"lastSeen":%q,"conditions":%s}]}}`,
			conditions, reporter, seen.Format(time.RFC3339), conditionsOf(b, "Reachable", "ControlPlaneHealthy"))
	}
	apply("v1beta1/clusters/west/status", "health", report("health", time.Unix(0, 0)))
	b.Run("lastSeen", func(b *testing.B) {
		measure(b, func(n int) { apply("v1beta1/clusters/west/status", "agent", report("agent", time.Unix(int64(n), 0))) })
		b.ReportMetric(float64(len(stored.value(keyOf("west")).data)), "stored-B/op")
		b.ReportMetric(float64(d.size("v1beta1/clusters/west", plain)), "watched-JSON-B/op")
		b.ReportMetric(float64(d.size("v1beta1/clusters/west", runtime.ContentTypeProtobuf)), "watched-protobuf-B/op")
	})
	const beats = "v1beta1/clusterheartbeats"
	if code, answer, _ := d.send(http.MethodPost, beats+"?fieldManager=agent", plain, heartbeatOf("west.agent", "")); code != http.StatusCreated {
		b.Fatalf("%d %s", code, answer)
	}
	b.Run("ClusterHeartbeat", func(b *testing.B) {
		measure(b, func(int) { apply(beats+"/west.agent", "agent", heartbeatOf("west.agent", "")) })
		b.ReportMetric(float64(len(stored.beats.value("/clusterheartbeats/west.agent").data)), "stored-B/op")
	})
}

// conditionsOf returns conditions of these types, in JSON.
func conditionsOf(b *testing.B, types ...string) string {
	b.Helper()
	var conditions []map[string]any
	for _, kind := range types {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "reason": "Reached", "observedGeneration": 1, "lastTransitionTime": "2026-11-20T00:00:00Z",
			"message": "The API server answers, with a certificate that can be verified."})
	}
	out, err := json.Marshal(conditions)
	if err != nil {
		b.Fatal(err)
	}
	return string(out)
}

package clusterregistry

import (
	"maps"
	"testing"

	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/metrics"
	"github.com/clusterregistry/operator/operator/render"
)

// TestMeasured is about what metrics are told of a registry.
func TestMeasured(t *testing.T) {
	const external = "{spec: {mode: Independent, server: {replicas: 4}, etcd: {external: {endpoints: ['https://a:2379']}}}, status: {version: v0.1.0}}"
	const own = "{spec: {mode: Aggregated, server: {replicas: 2}, etcd: {replicas: 3, storage: {size: 4Gi}}}, status: {version: v0.2.0}}"
	for _, test := range []struct {
		reason, registry string
		rendered         bool
		members          []etcd.Member
		want             metrics.Registry
	}{
		{"one that serves, with a member that does not answer", own, true, []etcd.Member{{Name: "fleet-etcd-0", DBSize: 20480}, {Name: "fleet-etcd-1"}},
			metrics.Registry{Mode: "Aggregated", Servers: 2, ServerMemory: 2 << 30, DatabaseSizes: map[string]int64{"fleet-etcd-0": 20480}, Quota: 2 << 30}},
		{"one that could not be rendered", own, false, nil, metrics.Registry{Mode: "Aggregated", Servers: 2, Quota: 2 << 30}},
		{"one whose etcd is external, and may be as full as its owner says", external, false, []etcd.Member{{Name: "a", DBSize: 1}},
			metrics.Registry{Mode: "Independent", Servers: 4, DatabaseSizes: map[string]int64{"a": 1}}},
		{"one whose etcd is external, and says how full it may be", external, false, []etcd.Member{{Name: "a", DBSize: 1, Quota: 3 << 30}, {Name: "b", Quota: 2 << 30}, {Name: "c"}},
			metrics.Registry{Mode: "Independent", Servers: 4, DatabaseSizes: map[string]int64{"a": 1}, Quota: 2 << 30}},
	} {
		s := look(t, test.registry)
		s.Members.State.Members = test.members
		s.Rendered = nil
		if test.rendered {
			s.Rendered = rendered(t, s)
		}
		got := s.measured()
		if got.Namespace != "team" || got.Name != "fleet" || got.Mode != test.want.Mode || got.Servers != test.want.Servers || got.ServerMemory != test.want.ServerMemory || got.Quota != test.want.Quota || !maps.Equal(got.DatabaseSizes, test.want.DatabaseSizes) {
			t.Errorf("%s: %+v, want %+v", test.reason, got, test.want)
		}
		if got.Status.Version == "" || got.Status.Version != s.Registry.Status.Version {
			t.Errorf("%s: the status is %+v", test.reason, got.Status)
		}
	}
}

// rendered returns what a registry comes to.
func rendered(t *testing.T, s *scope) *render.Result {
	t.Helper()
	in := s.input(render.Environment{ImageRepository: "registry.example", Namespace: "operator", ClusterDomain: "cluster.local"})
	in.Release.Layout, in.Release.EtcdLayout = "v1", "v1"
	out, err := render.Render(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

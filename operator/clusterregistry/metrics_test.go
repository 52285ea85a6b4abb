package clusterregistry

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/render"
)

// busy is a registry of which every metric tells: it is upgraded while a member
// of its etcd does not answer.
const busy = `{spec: {mode: Aggregated, server: {replicas: 2}, etcd: {replicas: 3, storage: {size: 4Gi}}}, status: {
	version: v0.1.0, etcdVersion: v3.6.14, hostVersion: v1.37.1,
	conditions: [{type: Ready, status: "False", reason: Etcd, message: "", lastTransitionTime: null}],
	certificates: [{name: fleet-serving, notAfter: "2030-01-01T00:00:00Z", renewalTime: "2029-12-01T00:00:00Z"}, {name: fleet-etcd-peer}],
	server: {replicas: 3, readyReplicas: 1},
	etcd: {members: [{name: fleet-etcd-0, ready: true}, {name: fleet-etcd-1}, {name: fleet-etcd-2, ready: true}]},
	operation: {type: Upgrade, from: v0.1.0, to: v0.2.0, phase: Etcd, phaseStartedTime: "2029-11-01T00:00:00Z"}}}`

const busyMetrics = `
# HELP clusterregistry_certificate_expiration_timestamp_seconds When each certificate of a ClusterRegistry ends, in seconds since 1970.
# TYPE clusterregistry_certificate_expiration_timestamp_seconds gauge
clusterregistry_certificate_expiration_timestamp_seconds{certificate="fleet-serving",name="fleet",namespace="team"} 1.893456e+09
# HELP clusterregistry_certificate_renewal_timestamp_seconds When cert-manager renews each certificate of a ClusterRegistry, in seconds since 1970.
# TYPE clusterregistry_certificate_renewal_timestamp_seconds gauge
clusterregistry_certificate_renewal_timestamp_seconds{certificate="fleet-serving",name="fleet",namespace="team"} 1.8907776e+09
# HELP clusterregistry_condition 1 for the status and reason that each condition of a ClusterRegistry has. APIServiceReady with reason BackendDown means that deletions of namespaces in the host hang.
# TYPE clusterregistry_condition gauge
clusterregistry_condition{name="fleet",namespace="team",reason="Etcd",status="False",type="Ready"} 1
# HELP clusterregistry_etcd_database_quota_bytes The size of the database at which a ClusterRegistry's own etcd refuses writes.
# TYPE clusterregistry_etcd_database_quota_bytes gauge
clusterregistry_etcd_database_quota_bytes{name="fleet",namespace="team"} 2.147483648e+09
# HELP clusterregistry_etcd_database_size_bytes The size of the database of each member of a ClusterRegistry's etcd that answers.
# TYPE clusterregistry_etcd_database_size_bytes gauge
clusterregistry_etcd_database_size_bytes{member="fleet-etcd-0",name="fleet",namespace="team"} 20480
clusterregistry_etcd_database_size_bytes{member="fleet-etcd-2",name="fleet",namespace="team"} 24576
# HELP clusterregistry_etcd_members How many members the etcd of a ClusterRegistry has.
# TYPE clusterregistry_etcd_members gauge
clusterregistry_etcd_members{name="fleet",namespace="team"} 3
# HELP clusterregistry_etcd_ready_members How many members of the etcd of a ClusterRegistry serve.
# TYPE clusterregistry_etcd_ready_members gauge
clusterregistry_etcd_ready_members{name="fleet",namespace="team"} 2
# HELP clusterregistry_info 1 for each ClusterRegistry, with its mode and the versions that run. One that is not known yet is empty.
# TYPE clusterregistry_info gauge
clusterregistry_info{etcd_version="v3.6.14",host_version="v1.37.1",mode="Aggregated",name="fleet",namespace="team",version="v0.1.0"} 1
# HELP clusterregistry_server_memory_limit_bytes How much memory each API server of a ClusterRegistry may use before the host kills it.
# TYPE clusterregistry_server_memory_limit_bytes gauge
clusterregistry_server_memory_limit_bytes{name="fleet",namespace="team"} 1.073741824e+09
# HELP clusterregistry_server_ready_replicas How many API servers of a ClusterRegistry serve.
# TYPE clusterregistry_server_ready_replicas gauge
clusterregistry_server_ready_replicas{name="fleet",namespace="team"} 1
# HELP clusterregistry_server_replicas How many API servers a ClusterRegistry is to have.
# TYPE clusterregistry_server_replicas gauge
clusterregistry_server_replicas{name="fleet",namespace="team"} 2
# HELP clusterregistry_operation_phase_start_timestamp_seconds When the present phase of the operation that is under way, such as an upgrade, began, in seconds since 1970.
# TYPE clusterregistry_operation_phase_start_timestamp_seconds gauge
clusterregistry_operation_phase_start_timestamp_seconds{from="v0.1.0",name="fleet",namespace="team",phase="Etcd",to="v0.2.0",type="Upgrade"} 1.8881856e+09
`

// TestMetrics is about what a look at a registry tells, and that nothing of it
// stays when the registry is gone.
func TestMetrics(t *testing.T) {
	s := look(t, busy)
	s.rendered = rendered(t, s)
	s.etcdState = etcd.State{Members: []etcd.Member{{Name: "fleet-etcd-0", DBSize: 20480}, {Name: "fleet-etcd-1"}, {Name: "fleet-etcd-2", DBSize: 24576}}}
	measure(s)
	if err := testutil.CollectAndCompare(measured, strings.NewReader(busyMetrics)); err != nil {
		t.Error(err)
	}
	problems, err := testutil.CollectAndLint(measured)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	if families := familiesOf(t, measured); families != len(descriptions) {
		t.Errorf("a busy registry tells %d metrics of %d: this test does not see the rest", families, len(descriptions))
	}

	other := look(t, "{spec: {mode: Independent}}")
	other.registry.Name = "other"
	measure(other)
	unmeasure(client.ObjectKeyFromObject(s.registry))
	if got := testutil.CollectAndCount(measured); got != len(other.metrics()) {
		t.Errorf("%d metrics are left of two registries, of which that which is there has %d", got, len(other.metrics()))
	}
	unmeasure(client.ObjectKeyFromObject(other.registry))
	if left := testutil.CollectAndCount(measured); left != 0 {
		t.Errorf("%d metrics are left of registries that are gone", left)
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

func familiesOf(t *testing.T, c prometheus.Collector) int {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return len(families)
}

// TestMetricsOfLittle is about what is not known: it has no metric, rather than
// one that is zero.
func TestMetricsOfLittle(t *testing.T) {
	for reason, test := range map[string]struct {
		registry string
		absent   []string
	}{
		"no member was seen yet":               {"{spec: {mode: Aggregated, etcd: {replicas: 3}}}", []string{"clusterregistry_etcd_members", "clusterregistry_etcd_ready_members", "clusterregistry_etcd_database_size_bytes"}},
		"how full an external one may get":     {"{spec: {mode: Aggregated, etcd: {external: {endpoints: ['https://a:2379']}}}}", []string{"clusterregistry_etcd_database_quota_bytes"}},
		"no certificate is issued":             {"{status: {certificates: [{name: fleet-serving}]}}", []string{"clusterregistry_certificate_expiration_timestamp_seconds", "clusterregistry_certificate_renewal_timestamp_seconds"}},
		"there is no phase without an upgrade": {"{status: {version: v0.1.0}}", []string{"clusterregistry_operation_phase_start_timestamp_seconds"}},
	} {
		s := look(t, test.registry)
		measure(s)
		for _, name := range test.absent {
			if got := testutil.CollectAndCount(measured, name); got != 0 {
				t.Errorf("%s: there are %d of %s", reason, got, name)
			}
		}
		if got := testutil.CollectAndCount(measured, "clusterregistry_info"); got != 1 {
			t.Errorf("%s: there are %d of clusterregistry_info", reason, got)
		}
		unmeasure(client.ObjectKeyFromObject(s.registry))
	}
}

package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// busy is the status of a registry of which every metric tells: it is upgraded while
// a member of its etcd does not answer.
const busy = `{
	version: v0.1.0, etcdVersion: v3.6.14, hostVersion: v1.37.1,
	conditions: [{type: Ready, status: "False", reason: Etcd, message: "", lastTransitionTime: null}],
	certificates: [{name: fleet-serving, notAfter: "2030-01-01T00:00:00Z", renewalTime: "2029-12-01T00:00:00Z"}, {name: fleet-etcd-peer}],
	server: {replicas: 3, readyReplicas: 1},
	etcd: {members: [{name: fleet-etcd-0, ready: true}, {name: fleet-etcd-1}, {name: fleet-etcd-2, ready: true}]},
	backup: {lastSuccess: {time: "2029-10-01T03:00:10Z", name: fleet-20291001-0300, bytes: 20512, verifiedTime: "2029-10-01T03:00:09Z"}, lastFailure: {time: "2029-09-30T03:00:09Z", name: fleet-20290930-0300}, nextRun: "2029-10-02T03:00:00Z"},
	operation: {type: Upgrade, from: v0.1.0, to: v0.2.0, phase: Etcd, phaseStartedTime: "2029-11-01T00:00:00Z"}}`

const busyMetrics = `
# HELP clusterregistry_backup_last_failure_timestamp_seconds When a backup of a ClusterRegistry last failed, in seconds since 1970.
# TYPE clusterregistry_backup_last_failure_timestamp_seconds gauge
clusterregistry_backup_last_failure_timestamp_seconds{name="fleet",namespace="team"} 1.885431609e+09
# HELP clusterregistry_backup_last_success_timestamp_seconds When a backup of a ClusterRegistry last succeeded, in seconds since 1970.
# TYPE clusterregistry_backup_last_success_timestamp_seconds gauge
clusterregistry_backup_last_success_timestamp_seconds{name="fleet",namespace="team"} 1.88551801e+09
# HELP clusterregistry_backup_last_verified_timestamp_seconds When the last backup of a ClusterRegistry that succeeded was verified, in seconds since 1970.
# TYPE clusterregistry_backup_last_verified_timestamp_seconds gauge
clusterregistry_backup_last_verified_timestamp_seconds{name="fleet",namespace="team"} 1.885518009e+09
# HELP clusterregistry_backup_next_run_timestamp_seconds When the next backup of a ClusterRegistry is due, in seconds since 1970.
# TYPE clusterregistry_backup_next_run_timestamp_seconds gauge
clusterregistry_backup_next_run_timestamp_seconds{name="fleet",namespace="team"} 1.8856044e+09
# HELP clusterregistry_backup_size_bytes The size of the last backup of a ClusterRegistry that succeeded.
# TYPE clusterregistry_backup_size_bytes gauge
clusterregistry_backup_size_bytes{name="fleet",namespace="team"} 20512
# HELP clusterregistry_certificate_expiration_timestamp_seconds When each certificate of a ClusterRegistry expires, in seconds since 1970.
# TYPE clusterregistry_certificate_expiration_timestamp_seconds gauge
clusterregistry_certificate_expiration_timestamp_seconds{certificate="fleet-serving",name="fleet",namespace="team"} 1.893456e+09
# HELP clusterregistry_certificate_renewal_timestamp_seconds When cert-manager renews each certificate of a ClusterRegistry, in seconds since 1970.
# TYPE clusterregistry_certificate_renewal_timestamp_seconds gauge
clusterregistry_certificate_renewal_timestamp_seconds{certificate="fleet-serving",name="fleet",namespace="team"} 1.8907776e+09
# HELP clusterregistry_condition 1 for the status and reason that each condition of a ClusterRegistry has. APIServiceReady with reason BackendDown means that the host cluster has not reached the servers for a minute.
# TYPE clusterregistry_condition gauge
clusterregistry_condition{name="fleet",namespace="team",reason="Etcd",status="False",type="Ready"} 1
# HELP clusterregistry_etcd_database_quota_bytes The size of the database at which the etcd of a ClusterRegistry refuses writes; the smallest of its members' where etcd is external.
# TYPE clusterregistry_etcd_database_quota_bytes gauge
clusterregistry_etcd_database_quota_bytes{name="fleet",namespace="team"} 2.147483648e+09
# HELP clusterregistry_etcd_database_size_bytes The size of the database of each member of a ClusterRegistry's etcd that answers.
# TYPE clusterregistry_etcd_database_size_bytes gauge
clusterregistry_etcd_database_size_bytes{member="fleet-etcd-0",name="fleet",namespace="team"} 20480
clusterregistry_etcd_database_size_bytes{member="fleet-etcd-2",name="fleet",namespace="team"} 24576
# HELP clusterregistry_etcd_members How many members the etcd of a ClusterRegistry has.
# TYPE clusterregistry_etcd_members gauge
clusterregistry_etcd_members{name="fleet",namespace="team"} 3
# HELP clusterregistry_etcd_ready_members How many etcd members of a ClusterRegistry are ready.
# TYPE clusterregistry_etcd_ready_members gauge
clusterregistry_etcd_ready_members{name="fleet",namespace="team"} 2
# HELP clusterregistry_etcd_revisions_missing How many revisions that it had acknowledged the etcd of a ClusterRegistry went back by, as long as no person has decided what becomes of them.
# TYPE clusterregistry_etcd_revisions_missing gauge
clusterregistry_etcd_revisions_missing{name="fleet",namespace="team"} 40
# HELP clusterregistry_info 1 for each ClusterRegistry, with its mode and the versions that run. One that is not known yet is empty.
# TYPE clusterregistry_info gauge
clusterregistry_info{etcd_version="v3.6.14",host_version="v1.37.1",mode="Aggregated",name="fleet",namespace="team",version="v0.1.0"} 1
# HELP clusterregistry_server_memory_limit_bytes How much memory each API server of a ClusterRegistry may use before the kernel kills it.
# TYPE clusterregistry_server_memory_limit_bytes gauge
clusterregistry_server_memory_limit_bytes{name="fleet",namespace="team"} 1.073741824e+09
# HELP clusterregistry_server_ready_replicas How many API servers of a ClusterRegistry are ready.
# TYPE clusterregistry_server_ready_replicas gauge
clusterregistry_server_ready_replicas{name="fleet",namespace="team"} 1
# HELP clusterregistry_server_replicas How many API servers a ClusterRegistry should have.
# TYPE clusterregistry_server_replicas gauge
clusterregistry_server_replicas{name="fleet",namespace="team"} 2
# HELP clusterregistry_operation_phase_start_timestamp_seconds When the present phase of the operation that is under way, such as an upgrade, began, in seconds since 1970.
# TYPE clusterregistry_operation_phase_start_timestamp_seconds gauge
clusterregistry_operation_phase_start_timestamp_seconds{from="v0.1.0",name="fleet",namespace="team",phase="Etcd",to="v0.2.0",type="Upgrade"} 1.8881856e+09
`

// TestMetrics is about what a reconcile tells, and that nothing of it stays when the
// registry is gone.
func TestMetrics(t *testing.T) {
	c, fleet := newCollector(), measured(t, busy)
	fleet.Mode, fleet.Servers, fleet.ServerMemory, fleet.Quota = operatorv1alpha1.ModeAggregated, 2, 1<<30, 2<<30
	fleet.WentBack = 40
	fleet.DatabaseSizes = map[string]int64{"fleet-etcd-0": 20480, "fleet-etcd-2": 24576}
	c.set(fleet)
	if err := testutil.CollectAndCompare(c, strings.NewReader(busyMetrics)); err != nil {
		t.Error(err)
	}
	problems, err := testutil.CollectAndLint(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	if families := familiesOf(t, c); families != len(descriptions) {
		t.Errorf("a busy registry tells %d metrics of %d: this test does not see the rest", families, len(descriptions))
	}

	other := measured(t, "{}")
	other.Name = "other"
	c.set(other)
	c.delete(fleet.NamespacedName)
	if got := testutil.CollectAndCount(c); got != len(of(other)) {
		t.Errorf("%d metrics are left of two registries, of which that which is there has %d", got, len(of(other)))
	}
	c.delete(other.NamespacedName)
	if left := testutil.CollectAndCount(c); left != 0 {
		t.Errorf("%d metrics are left of registries that are gone", left)
	}
}

// TestRegistered has what reconciles tell be what the operator serves.
func TestRegistered(t *testing.T) {
	fleet := measured(t, "{}")
	const name = "clusterregistry_info"
	for _, test := range []struct {
		reason string
		do     func()
		want   int
	}{
		{"there is a registry", func() { Set(fleet) }, 1},
		{"it is reconciled again", func() { Set(fleet) }, 1},
		{"it is gone", func() { Delete(fleet.NamespacedName) }, 0},
		{"it was gone before", func() { Delete(fleet.NamespacedName) }, 0},
	} {
		test.do()
		if got, err := testutil.GatherAndCount(metrics.Registry, name); err != nil || got != test.want {
			t.Errorf("%s: %d of %s, %v; want %d", test.reason, got, name, err, test.want)
		}
	}
}

// measured returns a registry with a status in YAML.
func measured(t *testing.T, status string) Registry {
	t.Helper()
	r := Registry{NamespacedName: types.NamespacedName{Namespace: "team", Name: "fleet"}}
	if err := yaml.UnmarshalStrict([]byte(status), &r.Status); err != nil {
		t.Fatalf("%v: %s", err, status)
	}
	return r
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
	for _, test := range []struct {
		reason, status string
		change         func(*Registry)
		absent         []string
	}{
		{"no member was seen yet", "{}", nil, []string{"clusterregistry_etcd_members", "clusterregistry_etcd_ready_members"}},
		{"no member answers", "{etcd: {members: [{name: fleet-etcd-0}]}}", nil, []string{"clusterregistry_etcd_database_size_bytes"}},
		{"how full an external one may get", "{}", func(r *Registry) { r.Quota = 0 }, []string{"clusterregistry_etcd_database_quota_bytes"}},
		{"etcd did not go back", "{}", nil, []string{"clusterregistry_etcd_revisions_missing"}},
		{"servers without a limit", "{}", func(r *Registry) { r.ServerMemory = 0 }, []string{"clusterregistry_server_memory_limit_bytes"}},
		{"no certificate is issued", "{certificates: [{name: fleet-serving}]}", nil, []string{"clusterregistry_certificate_expiration_timestamp_seconds", "clusterregistry_certificate_renewal_timestamp_seconds"}},
		{"there is no phase without an upgrade", "{version: v0.1.0}", nil, []string{"clusterregistry_operation_phase_start_timestamp_seconds"}},
	} {
		r := measured(t, test.status)
		r.Quota, r.ServerMemory = 1, 1
		if test.change != nil {
			test.change(&r)
		}
		c := newCollector()
		c.set(r)
		for _, name := range test.absent {
			if got := testutil.CollectAndCount(c, name); got != 0 {
				t.Errorf("%s: there are %d of %s", test.reason, got, name)
			}
		}
		if got := testutil.CollectAndCount(c, "clusterregistry_info"); got != 1 {
			t.Errorf("%s: there are %d of clusterregistry_info", test.reason, got)
		}
	}
}

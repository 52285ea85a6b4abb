package metrics

import "github.com/prometheus/client_golang/prometheus"

// The metrics of registries, all of them gauges with the labels namespace and
// name. They tell what the last reconcile of a registry found. docs/reference/metrics.md
// promises them, and a test compares.
var (
	conditionMetric = describe("clusterregistry_condition",
		"1 for the status and reason that each condition of a ClusterRegistry has. APIServiceReady with reason BackendDown means that the host cluster has not reached the servers for a minute.",
		"type", "status", "reason")
	infoMetric = describe("clusterregistry_info",
		"1 for each ClusterRegistry, with its mode and the versions that run. One that is not known yet is empty.",
		"mode", "version", "etcd_version", "host_version")
	expiryMetric = describe("clusterregistry_certificate_expiration_timestamp_seconds",
		"When each certificate of a ClusterRegistry expires, in seconds since 1970.", "certificate")
	renewalMetric = describe("clusterregistry_certificate_renewal_timestamp_seconds",
		"When cert-manager renews each certificate of a ClusterRegistry, in seconds since 1970.", "certificate")
	serversMetric = describe("clusterregistry_server_replicas",
		"How many API servers a ClusterRegistry should have.")
	readyServersMetric = describe("clusterregistry_server_ready_replicas",
		"How many API servers of a ClusterRegistry are ready.")
	serverMemoryMetric = describe("clusterregistry_server_memory_limit_bytes",
		"How much memory each API server of a ClusterRegistry may use before the kernel kills it.")
	membersMetric = describe("clusterregistry_etcd_members",
		"How many members the etcd of a ClusterRegistry has.")
	readyMembersMetric = describe("clusterregistry_etcd_ready_members",
		"How many etcd members of a ClusterRegistry are ready.")
	databaseMetric = describe("clusterregistry_etcd_database_size_bytes",
		"The size of the database of each member of a ClusterRegistry's etcd that answers.", "member")
	quotaMetric = describe("clusterregistry_etcd_database_quota_bytes",
		"The size of the database at which the etcd of a ClusterRegistry refuses writes; the smallest of its members' where etcd is external.")
	wentBackMetric = describe("clusterregistry_etcd_revisions_missing",
		"How many revisions that it had acknowledged the etcd of a ClusterRegistry went back by, as long as no person has decided what becomes of them.")
	backupSuccessMetric = describe("clusterregistry_backup_last_success_timestamp_seconds",
		"When a backup of a ClusterRegistry last succeeded, in seconds since 1970.")
	backupVerifiedMetric = describe("clusterregistry_backup_last_verified_timestamp_seconds",
		"When the last backup of a ClusterRegistry that succeeded was verified, in seconds since 1970.")
	backupFailureMetric = describe("clusterregistry_backup_last_failure_timestamp_seconds",
		"When a backup of a ClusterRegistry last failed, in seconds since 1970.")
	backupSizeMetric = describe("clusterregistry_backup_size_bytes",
		"The size of the last backup of a ClusterRegistry that succeeded.")
	backupNextMetric = describe("clusterregistry_backup_next_run_timestamp_seconds",
		"When the next backup of a ClusterRegistry is due, in seconds since 1970.")
	phaseMetric = describe("clusterregistry_operation_phase_start_timestamp_seconds",
		"When the present phase of the operation that is under way, such as an upgrade, began, in seconds since 1970.", "type", "from", "to", "phase")
)

// descriptions are those of all metrics.
var descriptions []*prometheus.Desc

func describe(name, help string, labels ...string) *prometheus.Desc {
	description := prometheus.NewDesc(name, help, append([]string{"namespace", "name"}, labels...), nil)
	descriptions = append(descriptions, description)
	return description
}

package contract

import (
	"fmt"
	"regexp"
)

// The names of a registry's objects, in its namespace: its own name, followed by one
// of these. The manifests spell them out, in every layout alike.
const (
	// ServerSuffix is for the servers: Deployment, Service, ServiceAccount,
	// NetworkPolicy and PodDisruptionBudget.
	ServerSuffix = "-server"
	// ControllerSuffix is for the controller: Deployment, ServiceAccount, ConfigMap,
	// RoleBinding, NetworkPolicy and PodDisruptionBudget, its Lease, the Service of its feed, and
	// its certificate, a Certificate with its Secret: as a user of an independent registry, or as
	// who answers in the feed of an aggregated one.
	ControllerSuffix = "-controller"
	// EtcdSuffix is for the registry's own etcd: StatefulSet, Service, ServiceAccount,
	// NetworkPolicy and PodDisruptionBudget.
	EtcdSuffix = "-etcd"

	// SelfSignedSuffix is for the Issuer of the CAs.
	SelfSignedSuffix = "-selfsigned"
	// caSuffix ends the names of all CAs of the first generation, and of nothing else. See
	// Generation and IsCA.
	caSuffix = "-ca"
	// EtcdCASuffix, ServingCASuffix and ClientCASuffix are for the CAs of etcd, of the
	// servers and of users: an Issuer, and a Certificate with its Secret.
	EtcdCASuffix    = "-etcd" + caSuffix
	ServingCASuffix = "-serving" + caSuffix
	ClientCASuffix  = "-client" + caSuffix
	// EtcdServerSuffix, EtcdPeerSuffix and EtcdClientSuffix are for the certificates of
	// etcd members and of their client, each a Certificate with its Secret.
	EtcdServerSuffix = "-etcd-server"
	EtcdPeerSuffix   = "-etcd-peer"
	EtcdClientSuffix = "-etcd-client"
	// ServingSuffix is for the servers' certificate: a Certificate with its Secret.
	ServingSuffix = "-serving"
	// AdminSuffix is for the administrator's certificate: a Certificate with its Secret.
	// It is also the administrator's user name.
	AdminSuffix = "-admin"
	// TrustSuffix is for the ConfigMap with the CAs that the registry trusts, as far as
	// changes of them are followed. EtcdTrustSuffix and EtcdClientTrustSuffix, each with a
	// dash and a digest of the content behind, are for those with the CAs that etcd members,
	// and servers, read once, at start. Layout v1 has the first alone.
	TrustSuffix           = "-trust"
	EtcdTrustSuffix       = "-etcd-trust"
	EtcdClientTrustSuffix = "-etcd-client-trust"

	// EncryptionSuffix, with a dash and a digest of the content behind, is for the Secrets
	// with the keys with which servers encrypt. From layout v2 on.
	EncryptionSuffix = "-encryption"
	// AuditSuffix, with a dash and a digest of the content behind, is for the Secrets from
	// which servers read, at start, what they record of requests. From layout v2 on.
	AuditSuffix = "-audit"

	// SnapshotSuffix is for the Job that saves etcd, SnapshotsSuffix for the
	// PersistentVolumeClaim that it saves to.
	SnapshotSuffix  = "-snapshot"
	SnapshotsSuffix = "-snapshots"

	// BackupSuffix is for the backups: the Job, which does one thing at a time about them, its
	// ServiceAccount and NetworkPolicy, and a ConfigMap with the CA of the store.
	BackupSuffix = "-backup"

	// RestoreSuffix is for what a registry needs that begins with a backup, until it has: the
	// Job that looks the backup up, its ServiceAccount and NetworkPolicy, and a ConfigMap with
	// the CA of the store.
	RestoreSuffix = "-restore"

	// IdentitySuffix is for the ConfigMap with the record of etcd's identity, and
	// KubeconfigSuffix for the Secret with the administrator's kubeconfig. The operator
	// makes both; no manifest has them.
	IdentitySuffix   = "-etcd-identity"
	KubeconfigSuffix = "-kubeconfig"
	// GenerationsSuffix is for the ConfigMap that records which generations of the CAs of
	// servers and users are in use, once one was rotated. The operator makes it.
	GenerationsSuffix = "-ca-generations"
)

// The ports on which a registry's pods listen, in every layout alike.
const (
	// EtcdClientPort is where each etcd member serves clients.
	EtcdClientPort = "2379"
	// EtcdPeerPort is where each etcd member serves other members.
	EtcdPeerPort = "2380"
	// ServerPort is where each server serves clients.
	ServerPort = "6443"
)

// Generation returns the name, or the suffix of names, of a generation of a CA from that of
// the first one: "-etcd-ca" becomes "-etcd-ca-2".
func Generation(first string, generation int32) string {
	if generation <= 1 {
		return first
	}
	return fmt.Sprintf("%s-%d", first, generation)
}

// aCA is the end of the name of a CA, of any generation.
var aCA = regexp.MustCompile(`-(?:etcd|serving|client)` + caSuffix + `(?:-[1-9][0-9]*)?$`)

// IsCA reports whether a Certificate or a Secret of a registry is, by its name, a CA.
func IsCA(name string) bool { return aCA.MatchString(name) }

// EtcdMember returns the name of a member of a registry's own etcd, which is that of
// its Pod.
func EtcdMember(registry string, ordinal int) string {
	return fmt.Sprintf("%s%s-%d", registry, EtcdSuffix, ordinal)
}

// EtcdMemberClaim returns the name of an etcd member's PersistentVolumeClaim: a
// StatefulSet forms it from that of its template, which is "data", and the Pod's.
func EtcdMemberClaim(member string) string { return "data-" + member }

// The groups that the client certificate of an independent registry's controller has,
// one for each function that is on. The registry binds a role of the same name to each.
const (
	HealthGroup            = "clusterregistry:controller:health"
	RegisterHostGroup      = "clusterregistry:controller:register-host"
	ClusterAPIGroup        = "clusterregistry:controller:cluster-api"
	ExportsGroup           = "clusterregistry:controller:exports"
	ClusterSelectionsGroup = "clusterregistry:controller:cluster-selections"
)

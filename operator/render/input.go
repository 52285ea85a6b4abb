// Package render turns a ClusterRegistry into the objects that make it: the
// embedded kustomize components, composed and patched by one generated overlay,
// with names filled in. It has no side effects: the same input gives the same
// objects.
package render

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/version"
)

// Input is all that the objects of a registry depend on.
type Input struct {
	// Registry is the wanted registry.
	Registry *operatorv1alpha1.ClusterRegistry
	// Release is what it should run.
	Release Release
	// HostVersion is the minor version of the host, such as 1.37. Aggregated
	// servers are replaced when it changes.
	HostVersion string
	// Trust is whom the registry trusts. Empty until the CAs exist.
	Trust Trust
	// Authorities are the generations of the CAs that are in use.
	Authorities Authorities
	// Addresses are names and IP addresses at which clients outside of the host
	// reach the servers, beyond the Service's own names.
	Addresses []string
	// Members are the names of the members of the registry's own etcd that have pods, in
	// the order of their ordinals; none when it is external.
	Members []string
	// Certified are the members whose names the certificates of etcd have, and Endpoints
	// those that the servers use, where these are not Members: while their number changes.
	Certified, Endpoints []string
	// Voters are the members that snapshots and backups are taken of, where these are not
	// Members.
	Voters []string
	// Volumes are those that the registry has already.
	Volumes Volumes
	// Snapshot is the name of the snapshot of etcd to be taken now, empty for none.
	Snapshot string
	// Encryption has the keys with which the servers encrypt what they store, nil for none.
	Encryption *Encryption
	// Audit is what the servers record of requests, nil for nothing.
	Audit *Audit
	// Visibility is which clusters the servers show; empty for what the spec says.
	Visibility operatorv1alpha1.Visibility
	// Reached are the namespaces of the host cluster in which the controller may work: of
	// those that the spec names, the registry's own and those that are open to the registry.
	Reached []string
	// Backup is what is to be done about backups now.
	Backup Backup
	// Restore is the backup that etcd is to begin with, nil for none, and as soon as it has.
	Restore *Restore
	// Stopped is what is not to run while a lost quorum is recovered.
	Stopped Stopped
	// UIDRange are the users that the platform gives to pods of the namespace, as OpenShift
	// writes it; empty where it gives none.
	UIDRange string
	// Environment is where the operator runs.
	Environment Environment
}

// Stopped says which parts of a registry have no pods.
type Stopped struct{ Servers, Members bool }

// unless returns how many pods a part has.
func unless(stopped bool, pods int32) int32 {
	if stopped {
		return 0
	}
	return pods
}

// Encryption is a configuration of keys.
type Encryption struct {
	// Configuration is an EncryptionConfiguration, and Digest identifies it.
	Configuration []byte
	Digest        string
}

// Audit is what servers record of requests, and where. All of it was checked.
type Audit struct {
	// Spec says where. Its references are not read: Policy and Webhook are what they refer to.
	Spec operatorv1alpha1.Audit
	// Policy is the policy, Webhook the kubeconfig of the server that receives events, nil
	// for none.
	Policy, Webhook []byte
}

// Release is what a release of the registry consists of.
type Release struct {
	// Version is the tag of the servers' image, Helper that of the helper's and Etcd
	// that of etcd's.
	Version, Helper, Etcd string
	// ServerDigest, HelperDigest, EtcdDigest, ControllerDigest and BackupDigest are the
	// digests under which these images are published, empty where none is recorded. Those
	// of the controller and of what keeps backups have the tag of the servers'.
	ServerDigest, HelperDigest, EtcdDigest, ControllerDigest, BackupDigest string
	// Layout names the manifests of the servers, the controller and their registration
	// with the host, EtcdLayout those of all else.
	Layout, EtcdLayout string
	// Serves are the API versions to register with the host, and Stores the one that
	// servers write to etcd.
	Serves []string
	Stores string
}

// ReleaseOf returns what a release of the registry consists of where etcd's pods are
// made as it says.
func ReleaseOf(r version.Release) Release {
	return Release{
		Version: r.Version, Layout: r.Layout, Serves: r.Serves, Stores: r.Stores, ServerDigest: r.Images.Server,
		ControllerDigest: r.Images.Controller, BackupDigest: r.Images.Backup,
		Helper: r.Members.Helper, HelperDigest: r.Members.HelperDigest,
		Etcd: r.Members.Etcd, EtcdDigest: r.Members.EtcdDigest, EtcdLayout: r.Members.Layout,
	}
}

// Volumes are what there is of a registry's volumes. They are as they were created,
// and may be other than what the registry asks for.
type Volumes struct {
	// Member is the size of the smallest volume of an etcd member, zero when there is
	// none.
	Member resource.Quantity
	// Quota is what etcd runs with already, zero when there is no etcd yet.
	Quota int64
	// Template is what etcd's StatefulSet has new claims request, which can't be changed;
	// zero when there is none yet.
	Template resource.Quantity
	// TemplateClass is the StorageClass that it has them be of, empty for the default one.
	TemplateClass string
	// Snapshots is the claim for snapshots, nil when there is none.
	Snapshots *corev1.PersistentVolumeClaimSpec
}

// Trust holds CA certificates in PEM.
type Trust struct {
	// Etcd signs etcd's members and clients, Serving the servers' certificate,
	// Clients (Independent mode only) the users'.
	Etcd, Serving, Clients []byte
	// EtcdClients is Etcd as those trust it that ask members. It differs while the CA is
	// rotated.
	EtcdClients []byte
}

// Environment is where the operator runs.
type Environment struct {
	// ImageRepository is where images come from when a registry names no other.
	ImageRepository string
	// ImageDigests says where images are referred to by digest, too.
	ImageDigests ImageDigests
	// Namespace is the operator's own.
	Namespace string
	// Namespaced is true for an operator of some namespaces, which may write nothing
	// that is of the whole cluster, as a ClusterRoleBinding is, for an independent
	// registry.
	Namespaced bool
	// ClusterDomain is the host's DNS domain, such as cluster.local.
	ClusterDomain string
	// Proxy is how stores are reached that are outside of the host.
	Proxy Proxy
}

// ImageDigests says in which repositories images have the digests under which they
// are published. Pods refer to those by digest, which no one can move.
type ImageDigests string

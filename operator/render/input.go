// Package render turns a ClusterRegistry into the objects that make it: the
// embedded kustomize components, composed and patched by one generated overlay,
// with names filled in. It has no side effects: the same input gives the same
// objects.
package render

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
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
	// Addresses are names and IP addresses at which clients outside of the host
	// reach the servers, beyond the Service's own names.
	Addresses []string
	// Members are the names of the members that the registry's own etcd has, in the
	// order of their ordinals; none when it is external.
	Members []string
	// Volumes are those that the registry has already.
	Volumes Volumes
	// Snapshot is the name of the snapshot of etcd to be taken now, empty for none.
	Snapshot string
	// Environment is where the operator runs.
	Environment Environment
}

// Release is what a release of the registry consists of.
type Release struct {
	// Version is the tag of the servers' image, Helper that of the helper's and Etcd
	// that of etcd's.
	Version, Helper, Etcd string
	// ServerDigest, HelperDigest and EtcdDigest are the digests under which these images
	// are published, empty where none is recorded.
	ServerDigest, HelperDigest, EtcdDigest string
	// Layout names the manifests of the servers and their registration with the
	// host, EtcdLayout those of all else.
	Layout, EtcdLayout string
	// Serves are the API versions to register with the host.
	Serves []string
}

// ReleaseOf returns what a release of the registry consists of where etcd's pods are
// made as it says.
func ReleaseOf(r version.Release) Release {
	return Release{
		Version: r.Version, Layout: r.Layout, Serves: r.Serves, ServerDigest: r.Images.Server,
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
	// Snapshots is the claim for snapshots, nil when there is none.
	Snapshots *corev1.PersistentVolumeClaimSpec
}

// Trust holds CA certificates in PEM.
type Trust struct {
	// Etcd signs etcd's members and clients, Serving the servers' certificate,
	// Clients (Independent mode only) the users'.
	Etcd, Serving, Clients []byte
}

// Environment is where the operator runs.
type Environment struct {
	// ImageRepository is where images come from when a registry names no other.
	ImageRepository string
	// ImageDigests says where images are referred to by digest, too.
	ImageDigests ImageDigests
	// Namespace is the operator's own.
	Namespace string
	// ClusterDomain is the host's DNS domain, such as cluster.local.
	ClusterDomain string
}

// EtcdClientSecret is the name of the Secret with the key pair that opens etcd.
func EtcdClientSecret(r *operatorv1alpha1.ClusterRegistry) string {
	if external := r.Spec.Etcd.External; external != nil {
		return external.TLSSecretRef.Name
	}
	return r.Name + contract.EtcdClientSuffix
}

// EtcdMember is a member of a registry's own etcd.
type EtcdMember struct {
	// Name is that of the member and of its pod.
	Name string
	// Host is its exact name in DNS.
	Host string
}

// ClientURL is where the member serves clients.
func (m EtcdMember) ClientURL() string { return "https://" + m.Host + ":2379" }

// EtcdMembers returns the members with the given names of a registry's own etcd.
func EtcdMembers(r *operatorv1alpha1.ClusterRegistry, names []string) []EtcdMember {
	var members []EtcdMember
	for _, name := range names {
		members = append(members, EtcdMember{Name: name, Host: fmt.Sprintf("%s.%s%s.%s.svc", name, r.Name, contract.EtcdSuffix, r.Namespace)})
	}
	return members
}

// EtcdEndpoints returns the URLs of the members with the given names or, when etcd is
// external, those that the spec has.
func EtcdEndpoints(r *operatorv1alpha1.ClusterRegistry, names []string) []string {
	var urls []string
	if external := r.Spec.Etcd.External; external != nil {
		for _, endpoint := range external.Endpoints {
			urls = append(urls, string(endpoint))
		}
		return urls
	}
	for _, member := range EtcdMembers(r, names) {
		urls = append(urls, member.ClientURL())
	}
	return urls
}

// EtcdStorage returns the size of the volume that is asked for a member.
func EtcdStorage(r *operatorv1alpha1.ClusterRegistry) resource.Quantity {
	if storage := r.Spec.Etcd.Storage; storage != nil && !storage.Size.IsZero() {
		return storage.Size
	}
	return resource.MustParse(operatorv1alpha1.DefaultStorageSize)
}

// leastQuota is what etcd may fill of a volume, in bytes, however small that is: 0
// would mean 2 GiB to etcd. The schema refuses sizes that are so small.
const leastQuota = 16 << 20

// EtcdQuota returns how many bytes of data a member of a registry's own etcd may
// hold: half of its volume, since snapshots and the log need room, and at most the
// 8 GiB that etcd is made for. All members have the same, and so the smallest
// volume counts where one is smaller than what is asked for. Of an etcd that runs it
// is never lowered: with more data than that, the first member to be restarted would
// have all of them refuse writes.
func EtcdQuota(r *operatorv1alpha1.ClusterRegistry, found Volumes) int64 {
	size := EtcdStorage(r)
	if !found.Member.IsZero() && found.Member.Cmp(size) < 0 {
		size = found.Member
	}
	return max(leastQuota, min(size.Value()/2, 8<<30), found.Quota)
}

// SnapshotsStorage returns the size of the claim for snapshots: three that are kept
// and one that is being taken, of an etcd that is full, and what the file system
// needs.
func SnapshotsStorage(r *operatorv1alpha1.ClusterRegistry, found Volumes) resource.Quantity {
	return *resource.NewQuantity(5*EtcdQuota(r, found), resource.BinarySI)
}

// snapshotsClaim returns the size and the class of the claim for snapshots. One that
// is there stays as it is: it holds snapshots, and may neither shrink nor change its
// class.
func snapshotsClaim(in Input) (size resource.Quantity, class string) {
	if claim := in.Volumes.Snapshots; claim != nil {
		if claim.StorageClassName != nil {
			class = *claim.StorageClassName
		}
		return claim.Resources.Requests[corev1.ResourceStorage], class
	}
	return SnapshotsStorage(in.Registry, in.Volumes), etcdClass(in.Registry.Spec.Etcd)
}

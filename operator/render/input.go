// Package render turns a ClusterRegistry into the objects that make it: the
// embedded kustomize components, composed and patched by one generated overlay,
// with names filled in. It has no side effects: the same input gives the same
// objects.
package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
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
	// Layout names the manifests of the servers and their registration with the
	// host, EtcdLayout those of all else.
	Layout, EtcdLayout string
	// Serves are the API versions to register with the host.
	Serves []string
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
	return r.Name + "-etcd-client"
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

// EtcdMembers returns the members of a registry's own etcd, none when it is external.
func EtcdMembers(r *operatorv1alpha1.ClusterRegistry) []EtcdMember {
	var members []EtcdMember
	for i := range r.Spec.Etcd.Replicas {
		name := fmt.Sprintf("%s-etcd-%d", r.Name, i)
		members = append(members, EtcdMember{Name: name, Host: fmt.Sprintf("%s.%s-etcd.%s.svc", name, r.Name, r.Namespace)})
	}
	return members
}

// EtcdEndpoints returns the URLs of all members, of an external etcd, too.
func EtcdEndpoints(r *operatorv1alpha1.ClusterRegistry) []string {
	var urls []string
	if external := r.Spec.Etcd.External; external != nil {
		for _, endpoint := range external.Endpoints {
			urls = append(urls, string(endpoint))
		}
		return urls
	}
	for _, member := range EtcdMembers(r) {
		urls = append(urls, member.ClientURL())
	}
	return urls
}

// snapshots returns the size of the claim for snapshots: three that are kept and
// one that is being taken, of an etcd that is full, and what the file system needs.
func snapshots(etcd operatorv1alpha1.Etcd) resource.Quantity {
	_, quota := storage(etcd)
	return *resource.NewQuantity(5*quota, resource.BinarySI)
}

// EtcdQuota returns how many bytes of data a member of a registry's own etcd may
// hold.
func EtcdQuota(r *operatorv1alpha1.ClusterRegistry) int64 {
	_, quota := storage(r.Spec.Etcd)
	return quota
}

// leastQuota is what etcd may fill of a volume, in bytes, however small that is: 0
// would mean 2 GiB to etcd. The schema refuses sizes that are so small.
const leastQuota = 16 << 20

// storage returns the size of a member's volume, and how much of it etcd may
// fill: half, since snapshots and the log need room, and at most the 8 GiB that
// etcd is made for.
func storage(etcd operatorv1alpha1.Etcd) (size resource.Quantity, quota int64) {
	size = resource.MustParse(operatorv1alpha1.DefaultStorageSize)
	if etcd.Storage != nil && !etcd.Storage.Size.IsZero() {
		size = etcd.Storage.Size
	}
	return size, max(leastQuota, min(size.Value()/2, 8<<30))
}

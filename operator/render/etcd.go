package render

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

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
func (m EtcdMember) ClientURL() string { return "https://" + m.Host + ":" + contract.EtcdClientPort }

// PeerURL is where the member serves other members.
func (m EtcdMember) PeerURL() string { return "https://" + m.Host + ":" + contract.EtcdPeerPort }

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

// etcdTemplate returns what the claim of a new member requests: what the StatefulSet says
// that is there, since its claim templates are immutable. Claims grow after that.
func etcdTemplate(in Input) resource.Quantity {
	if template := in.Volumes.Template; !template.IsZero() {
		return template
	}
	size := EtcdStorage(in.Registry)
	if least := resource.NewQuantity(2*in.Volumes.Quota, resource.BinarySI); size.Cmp(*least) < 0 {
		return *least // the StatefulSet is recreated under members that run with that quota
	}
	return size
}

// templateClass returns the StorageClass of the claim of a new member: as with the size, that
// of the StatefulSet that is there.
func templateClass(in Input) string {
	if !in.Volumes.Template.IsZero() {
		return in.Volumes.TemplateClass
	}
	return EtcdClass(in.Registry)
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
func snapshotsClaim(in Input) (size resource.Quantity, storageClass string) {
	if claim := in.Volumes.Snapshots; claim != nil {
		if claim.StorageClassName != nil {
			storageClass = *claim.StorageClassName
		}
		return claim.Resources.Requests[corev1.ResourceStorage], storageClass
	}
	return SnapshotsStorage(in.Registry, in.Volumes), EtcdClass(in.Registry)
}

// EtcdClass returns the StorageClass that is asked for, empty where none is named: then it is
// the default one for new claims, and any for those that are there.
func EtcdClass(r *operatorv1alpha1.ClusterRegistry) string {
	if r.Spec.Etcd.Storage == nil {
		return ""
	}
	return r.Spec.Etcd.Storage.StorageClassName
}

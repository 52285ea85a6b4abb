package members

import (
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/verdict"
)

// unknownQuota is what etcd's quota is by default, of a member that does not say it.
const unknownQuota = 2 << 30

// noteSizes writes down how large the file of a member is that has answered, in whole MiB. What
// is in use changes all the time, and a steady registry must not be written: a size is written
// again when one has changed by a tenth of the quota, or the member was defragmented a short
// while ago.
func (s *Stage) noteSizes(into *operatorv1alpha1.EtcdMember, said etcd.Member) {
	if said.DBSize <= 0 {
		return
	}
	quota := said.Quota
	if quota <= 0 {
		quota = unknownQuota
	}
	recent := into.DefragmentedTime != nil && s.Now.Sub(into.DefragmentedTime.Time) < 2*verdict.Vigil
	if !recent && !moved(into.DatabaseSize, said.DBSize, quota/10) && !moved(into.DatabaseSizeInUse, said.DBSizeInUse, quota/10) && (said.Quota <= 0 || !moved(into.Quota, said.Quota, 1<<20)) {
		return
	}
	into.DatabaseSize, into.DatabaseSizeInUse, into.Quota = mebibytes(said.DBSize), mebibytes(said.DBSizeInUse), nil
	if said.Quota > 0 {
		into.Quota = mebibytes(said.Quota)
	}
}

// moved reports whether a size is not written yet, or differs by a step.
func moved(written *resource.Quantity, size, step int64) bool {
	if written == nil {
		return true
	}
	difference := written.Value() - size
	return max(difference, -difference) >= step
}

// mebibytes returns a size in whole MiB, rounded up.
func mebibytes(size int64) *resource.Quantity {
	return resource.NewQuantity((size+1<<20-1)>>20<<20, resource.BinarySI)
}

package identity

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand"
)

// External returns what is recorded of an external etcd, which is in the status: of what others
// run, nothing outlives the registry.
func External(status *operatorv1alpha1.ClusterRegistryStatus) *etcd.Record {
	record := &etcd.Record{Identity: etcd.Identity{ClusterID: status.Etcd.ClusterID}}
	if newest := status.Etcd.Newest; newest != nil {
		record.Newest = etcd.Newest{Position: etcd.Position{Revision: newest.Revision, Upkeep: newest.Upkeep}, Time: newest.Time.Time}
	}
	if lost := status.Recovery; lost != nil {
		record.WentBack = &etcd.WentBack{ID: lost.ID, From: lost.LastRevision, Time: lost.LostTime.Time}
		for _, member := range lost.Members {
			record.WentBack.To = max(record.WentBack.To, member.Revision)
		}
	}
	return record
}

// WriteExternal records in the status how far an external etcd is, and from where to where it
// went back.
func WriteExternal(status *operatorv1alpha1.ClusterRegistryStatus, record *etcd.Record, state etcd.State) {
	if record.Newest.Revision > 0 {
		status.Etcd.Newest = &operatorv1alpha1.EtcdRevision{Revision: record.Newest.Revision, Upkeep: record.Newest.Upkeep, Time: metav1.NewTime(record.Newest.Time)}
	}
	back := record.WentBack
	if back == nil {
		status.Recovery = nil
		return
	}
	lost := &operatorv1alpha1.RecoveryStatus{ID: back.ID, LostTime: metav1.NewTime(back.Time), LastRevision: back.From}
	for _, m := range state.Members {
		member := operatorv1alpha1.RecoveryMember{Name: m.Name, Revision: back.To, RevisionsLost: back.From - back.To, Message: "it serves clients, and lacks what etcd went back by; it may have got further since"}
		if m.Err != nil {
			member = operatorv1alpha1.RecoveryMember{Name: m.Name, Message: m.Err.Error()}
		}
		lost.Members = append(lost.Members, member)
	}
	status.Recovery = lost
}

// RememberExternal records the newest revision of an external etcd, if that is news.
func RememberExternal(ctx context.Context, objects *operand.Objects, revision int64) error {
	before := objects.Registry.DeepCopy()
	record, isNew := External(&before.Status).Remember(revision, objects.Now)
	if !isNew {
		return nil
	}
	after := before.DeepCopy()
	WriteExternal(&after.Status, record, etcd.State{})
	if err := objects.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("record the newest revision of an external etcd: %w", err)
	}
	return nil
}

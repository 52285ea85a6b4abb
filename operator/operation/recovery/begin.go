package recovery

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/restore"
)

// Begin records that etcd is to continue with the copy of its data that a person has approved,
// which is the given backup if it is not that of a member. Nothing is stopped before that. A
// recovery that is under way begins again with another copy, or with another bound on what may
// be lost.
func Begin(ctx context.Context, o *operand.Objects, record *identity.Store, approval restore.Approval, backup *etcd.Restored) error {
	if (approval.From == operatorv1alpha1.RecoverFromBackup) != (backup != nil) {
		return fmt.Errorf("a recovery from %s needs what is known of the backup, and no other one does", approval.From)
	}
	now := *record.Record
	recovered := etcd.Recovered{
		ID: approval.Lost.ID, LostTime: approval.Lost.LostTime.UTC(), LastRevision: approval.Lost.LastRevision, From: approval.From, Name: approval.Name, Backup: backup,
		Member: approval.Name, Cluster: now.ClusterID, Members: maps.Clone(now.Members), Lineage: string(uuid.NewUUID()), Before: now.Lineage, Phase: operatorv1alpha1.RecoveryStopping,
	}
	if backup == nil {
		recovered.Revision = approval.Least()
	} else {
		recovered.Member = contract.EtcdMember(o.Registry.Name, 0)
	}
	if before := now.Recovered; before.Pending() {
		recovered.Cluster, recovered.Members, recovered.Before = before.Cluster, before.Members, before.Before
	}
	var err error
	if recovered.Abandoned, err = abandoned(ctx, o, &now, recovered); err != nil {
		return err
	}
	now.Recovered, now.Restored = &recovered, unlessPending(now)
	return record.Write(ctx, &now)
}

// unlessPending returns what was restored, but for what a recovery that begins again was to.
func unlessPending(record etcd.Record) *etcd.Restored {
	if record.Restored.Pending() {
		return nil
	}
	return record.Restored
}

// Bound records another lowest revision that the data may end with.
func Bound(ctx context.Context, record *identity.Store, revision int64) error {
	now := *record.Record
	recovered := *now.Recovered
	recovered.Revision, now.Recovered = revision, &recovered
	return record.Write(ctx, &now)
}

// abandoned returns all claims of members but the one whose data is used.
func abandoned(ctx context.Context, o *operand.Objects, record *etcd.Record, recovered etcd.Recovered) (map[string]etcd.Claim, error) {
	out := map[string]etcd.Claim{}
	for ordinal := range membership.Most {
		name := contract.EtcdMember(o.Registry.Name, ordinal)
		claim := &metav1.PartialObjectMetadata{}
		claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		err := o.Live.Get(ctx, client.ObjectKey{Namespace: o.Registry.Namespace, Name: contract.EtcdMemberClaim(name)}, claim)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		used := recovered.From == operatorv1alpha1.RecoverFromMember && name == recovered.Member
		if err != nil || used {
			continue
		}
		out[name] = etcd.Claim{UID: string(claim.UID), Cluster: recovered.Cluster}
		if before := record.Abandons(name); before.UID == string(claim.UID) {
			out[name] = before
		}
	}
	return out, nil
}

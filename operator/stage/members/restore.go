package members

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/verdict"
)

// restored records that etcd serves what was restored: from then on nothing is restored any
// more, whatever becomes of the volume. No server runs before that, so no client has written
// anything that another restore would take away.
func (s *Stage) restored(ctx context.Context) verdict.Verdict {
	if s.ReadOnly() {
		return verdict.Waiting(operatorv1alpha1.ReasonRestoring, "etcd serves the restored data, and the registry is completed when %s", s.ReadOnlyUntil())
	}
	record := *s.Identity.Record
	record.Restored = record.Restored.Done(s.Now)
	if err := s.Identity.Write(ctx, &record); err != nil {
		return verdict.Failed(err)
	}
	// What is rendered still restores.
	return verdict.Waiting(operatorv1alpha1.ReasonRestoring, "etcd serves the restored data, which was recorded just now").In(verdict.AtOnce)
}

// endEarlier replaces a pod in which a member of the etcd runs that has lost its quorum: what
// its guard had of the record was late.
func (s *Stage) endEarlier(ctx context.Context, state etcd.State, pods []corev1.Pod) verdict.Verdict {
	recovered := s.Identity.Record.Recovered
	if !recovered.Pending() || recovered.Phase != operatorv1alpha1.RecoveryRestoring || s.ReadOnly() {
		return done
	}
	for i := range pods {
		earlier := slices.ContainsFunc(state.Members, func(m etcd.Member) bool { return m.Name == pods[i].Name && m.ClusterID == recovered.Cluster })
		if !earlier || pods[i].DeletionTimestamp != nil {
			continue
		}
		if err := s.replace(ctx, &pods[i]); err != nil {
			return verdict.Failed(err)
		}
		return verdict.Waiting(operatorv1alpha1.ReasonRecovering, "pod %s is replaced, since it has begun before the recovery was recorded", pods[i].Name).In(verdict.Soon)
	}
	return done
}

// restoring returns the verdict on members of which the first one is being restored.
func (s *Stage) restoring(v verdict.Verdict) verdict.Verdict {
	restored := s.Identity.Record.Restored
	if !restored.Pending() || s.Identity.Record.Recovered.Pending() {
		return v
	}
	switch v.Reason {
	case operatorv1alpha1.ReasonMembersNotReady, operatorv1alpha1.ReasonWaiting, operatorv1alpha1.ReasonProgressing:
		v.Reason, v.Message = operatorv1alpha1.ReasonRestoring, "etcd is restored from "+restored.Report.Location+": "+v.Message+"; if that backup is gone meanwhile, set spec.deletionPolicy to Delete, delete this ClusterRegistry, and create it with another restoreFrom: no client has written to it"
	}
	return v
}

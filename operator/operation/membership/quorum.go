package membership

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/operand"
)

// QuorumLost returns the members of an etcd that has lost its quorum for good, by name, and
// nil when it has not, or that is not certain: a majority that can't be reached may serve, and
// members that are down may come back with their data. One that has not served yet what it is
// restored to has nothing to lose.
func (c *Change) QuorumLost(ctx context.Context) ([]operatorv1alpha1.RecoveryMember, error) {
	record := c.Identity.Record
	led := slices.ContainsFunc(c.State.Members, func(m etcd.Member) bool { return m.Err == nil || m.Leader != "" })
	formed := record.InitialClusterState == contract.StateExisting && record.ClusterID != "" && len(record.Members) > 0
	if led || !formed || record.Restored.Pending() || record.Recovered.Pending() {
		return nil, nil
	}
	out, held, err := c.left(ctx)
	if err != nil || !plan.QuorumLost(held) {
		return nil, err
	}
	return out, nil
}

// Left returns what is left of each recorded member's data, by name.
func (c *Change) Left(ctx context.Context) ([]operatorv1alpha1.RecoveryMember, error) {
	out, _, err := c.left(ctx)
	return out, err
}

// left returns what is left of each recorded member's data, for people and for the plan.
func (c *Change) left(ctx context.Context) (out []operatorv1alpha1.RecoveryMember, held []plan.Held, err error) {
	planned, v := c.record()
	if !v.Complete() {
		return nil, nil, v.Err // another condition says what is wrong with the record
	}
	claims, err := c.claims(ctx, planned)
	if err != nil {
		return nil, nil, err
	}
	pods, err := c.Pods(ctx, operand.ComponentEtcd)
	if err != nil {
		return nil, nil, err
	}
	record := c.Identity.Record
	for _, name := range slices.Sorted(maps.Keys(record.Members)) {
		found := pod(pods, name)
		why, err := c.gone(ctx, found, claims[c.ordinal(name)])
		if err != nil {
			return nil, nil, err
		}
		switch {
		case why != "":
		case c.refused(found, contract.GuardRefused):
			why = "its data is lost or damaged"
		case name == record.Joining && c.empty(found, claims[c.ordinal(name)]):
			why = "it was being added to etcd, and has no data yet"
		}
		// One that runs may serve those who reach it, whatever became of its claim.
		held = append(held, plan.Held{ID: record.Members[name], Gone: why != "" && !c.runs(found), Voters: c.voters(record.Members[name]), Unsure: name == record.Joining || name == record.Leaving, Leaves: name == record.Leaving})
		out = append(out, c.leftOf(name, why, found))
	}
	return out, held, nil
}

// voters returns the members that have a vote by what the one with the ID says itself, none when
// it has not said that.
func (c *Change) voters(id string) []string {
	i := slices.IndexFunc(c.State.Members, func(m etcd.Member) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return c.State.Members[i].Voters
}

// empty reports whether a member that joins has no data for certain: its guard says so, or it
// has no volume yet.
func (c *Change) empty(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return c.refused(pod, contract.GuardEmpty) || !c.runs(pod) && (claim == nil || claim.Spec.VolumeName == "")
}

// refused reports whether the guard has ended a member with a code, also while it is asked once
// more at this moment.
func (c *Change) refused(pod *corev1.Pod, code int32) bool {
	return pod != nil && !c.runs(pod) && slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		failure := diagnose.Failure(status)
		if status.State.Running != nil {
			failure = status.LastTerminationState.Terminated
		}
		return status.Name == operand.ComponentEtcd && failure != nil && failure.ExitCode == code
	})
}

// leftOf says what is left of a member. Without a quorum, etcd says which revision it has
// until it is restarted, and no longer.
func (c *Change) leftOf(name, gone string, pod *corev1.Pod) operatorv1alpha1.RecoveryMember {
	m := operatorv1alpha1.RecoveryMember{Name: name, DataGone: gone != "", Message: gone}
	if gone != "" {
		return m
	}
	i := slices.IndexFunc(c.State.Members, func(m etcd.Member) bool { return m.Name == name && m.ID != "" })
	m.Corrupt = i >= 0 && c.State.Members[i].Corrupt()
	switch {
	case i >= 0 && c.State.Members[i].Revision > 0:
		m.Revision, m.Message = c.State.Members[i].Revision, "it has its data"
	case c.runs(pod):
		m.Message = "it has its data, and does not say up to which revision: etcd was restarted without a quorum"
	case pod == nil || pod.Spec.NodeName == "":
		m.Message = "its data may be left: its pod does not run"
	default:
		m.Message = "its data may be left: it does not answer, and was on node " + pod.Spec.NodeName
	}
	return m
}

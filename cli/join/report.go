package join

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/member"
	clusterclient "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
)

// The condition that tells that the cluster's identity was read from it.
const (
	conditionIdentityVerified = v1beta1.ConditionIdentityVerified
	reasonJoined              = "Joined"
	reasonNotReached          = "NotReachedWhenJoined"
	reasonIDChosen            = "IDChosen"
)

// answers reports whether the cluster that says these facts of itself is known to answer at
// the address that is entered, which others may reach and this computer not. It refuses that
// of another cluster.
func (j *joiner) answers(ctx context.Context, found *member.Member, server string, facts member.Facts) (bool, error) {
	there, err := j.ask(ctx, found, server)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil:
		fmt.Fprintf(j.env.ErrOut, "note: that the cluster answers at %s is not verified: %s\n", command.Plain(server), command.Plain(err.Error()))
		return false, nil
	case there.ID != facts.ID:
		return false, command.Refusedf("another cluster answers at --server=%s than at the address of context %q: its id is %s there, and %s here; correct one of them", command.Plain(server), command.Plain(j.context), command.Plain(there.ID), command.Plain(facts.ID))
	}
	return true, nil
}

// report writes to the cluster's status what the cluster has said of itself: its
// version, and whether it has the entry's id at the entry's address. Without the right to write the status the
// cluster has joined all the same.
func (j *joiner) report(ctx context.Context, clusters clusterclient.ClusterInterface, made *v1beta1.Cluster, facts member.Facts, verified bool) *v1beta1.Cluster {
	identity := metav1.Condition{
		Type: conditionIdentityVerified, Status: metav1.ConditionTrue, Reason: reasonJoined, ObservedGeneration: made.Generation,
		Message: "The UID of the cluster's namespace kube-system was read when it joined", LastTransitionTime: metav1.NewTime(j.env.Now()),
	}
	switch {
	case made.Spec.ID != facts.ID:
		identity.Status, identity.Reason = metav1.ConditionUnknown, reasonIDChosen
		identity.Message = "The id was chosen when the cluster joined, and is not the UID of its namespace kube-system: that can't tell it from a cluster with the same UID"
	case !verified:
		identity.Status, identity.Reason = metav1.ConditionUnknown, reasonNotReached
		identity.Message = "The cluster was asked at another address when it joined, and not reached at that of the entry: join it again from where both are reached"
	}
	// The health controller reacts to the same change, and may be faster.
	written, err := command.UpdateStatus(ctx, clusters, made, func(next *v1beta1.Cluster) {
		if next.Status == nil {
			next.Status = &v1beta1.ClusterStatus{}
		}
		next.Status.Version.Kubernetes = facts.Version
		meta.SetStatusCondition(&next.Status.Conditions, identity)
	})
	if err != nil {
		fmt.Fprintf(j.env.ErrOut, "note: the cluster has joined, and its version, %s, was not written to its status: %s\n", command.Plain(facts.Version), command.Plain(err.Error()))
		return made
	}
	return written
}

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
)

// report writes to the cluster's status what the cluster has said of itself: its
// version, and that it has the entry's id. Without the right to write the status the
// cluster has joined all the same.
func (j *joiner) report(ctx context.Context, clusters clusterclient.ClusterInterface, made *v1beta1.Cluster, facts member.Facts) *v1beta1.Cluster {
	// The health controller reacts to the same change, and may be faster.
	written, err := command.UpdateStatus(ctx, clusters, made, func(next *v1beta1.Cluster) {
		if next.Status == nil {
			next.Status = &v1beta1.ClusterStatus{}
		}
		next.Status.Version.Kubernetes = facts.Version
		meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
			Type: conditionIdentityVerified, Status: metav1.ConditionTrue, Reason: reasonJoined, ObservedGeneration: made.Generation,
			Message: "The UID of the cluster's namespace kube-system was read when it joined", LastTransitionTime: metav1.NewTime(j.env.Now()),
		})
	})
	if err != nil {
		fmt.Fprintf(j.env.ErrOut, "note: the cluster has joined, and its version, %s, was not written to its status: %s\n", command.Plain(facts.Version), command.Plain(err.Error()))
		return made
	}
	return written
}

package membership

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/etcd/plan"
	"github.com/clusterregistry/operator/operator/operand"
)

// lost observes of which members the data is certainly gone, and has been for as long as
// they are waited for. A member that serves is not lost, and neither is a learner that was
// never started. A learner has no data that others count on: it is not waited for.
func (c *Change) lost(ctx context.Context, seen *plan.Observed, pods []corev1.Pod, claims map[int]*corev1.PersistentVolumeClaim) error {
	after := c.replaceAfter()
	for _, m := range seen.List {
		if m.Ordinal == plan.None || c.Identity.Record.Members[c.member(m.Ordinal)] != m.ID || seen.Lost[m.Ordinal] != "" {
			continue
		}
		why := ""
		if m.Named && !m.Serves {
			var err error
			if why, err = c.gone(ctx, pod(pods, c.member(m.Ordinal)), claims[m.Ordinal]); err != nil {
				return err
			}
		}
		if why == "" {
			if m.Serves || !m.Named || c.runs(pod(pods, c.member(m.Ordinal))) {
				c.found(m.Ordinal)
			}
			continue
		}
		since := c.lostSince(m.Ordinal)
		due := since.Add(after)
		switch {
		case m.Learner, after > 0 && !c.Now.Before(due):
			seen.Lost[m.Ordinal] = why
		case after > 0 && (c.within == 0 || due.Sub(c.Now) < c.within):
			c.within = max(due.Sub(c.Now), time.Second)
		}
	}
	return nil
}

// replaceAfter is how long a lost member is waited for, zero when only a person replaces it.
func (c *Change) replaceAfter() time.Duration {
	if given := c.Registry.Spec.Etcd.ReplaceAfter; given != nil {
		return given.Duration
	}
	return operatorv1alpha1.DefaultReplaceAfter
}

// started is how long a member's container must have run for its guard to have let etcd
// start: until then, a member that was lost is started once more to be refused.
const started = time.Minute

// runs reports whether etcd runs in a pod.
func (c *Change) runs(pod *corev1.Pod) bool {
	return pod != nil && slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		running := status.State.Running
		return status.Name == operand.ComponentEtcd && running != nil && c.Now.Sub(running.StartedAt.Time) > started
	})
}

// pod returns the pod of a name, nil when there is none.
func pod(pods []corev1.Pod, name string) *corev1.Pod {
	i := slices.IndexFunc(pods, func(pod corev1.Pod) bool { return pod.Name == name })
	if i < 0 {
		return nil
	}
	return &pods[i]
}

// gone says why the data of a member that does not serve is certainly gone; it says nothing
// when the member may come back with it.
func (c *Change) gone(ctx context.Context, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) (string, error) {
	ends, text := end(pod)
	switch {
	case pod != nil && diagnose.DataLost(pod):
		return "its data is lost or damaged", nil
	case ends == diagnose.Damaged:
		return fmt.Sprintf("its data is damaged (etcd ends with %q)", text), nil
	case ends == diagnose.Behind && c.Etcd.Outlier(ctx, pod.Name) == nil:
		c.differs = pod.Name
		return "its data is older than what it had acknowledged, as after its volume was set back, and all other members agree without it", nil
	case ends == diagnose.Differs && c.Etcd.Outlier(ctx, pod.Name) == nil:
		c.differs = pod.Name
		return fmt.Sprintf("its data differs from that of all other members (etcd ends with %q)", text), nil
	case claim == nil || claim.DeletionTimestamp != nil || pod != nil && pod.Spec.NodeName != "" && claim.Status.Phase != corev1.ClaimLost:
		return "", nil // the pod that comes, or the one that there is, finds out
	case claim.Status.Phase == corev1.ClaimLost:
		return fmt.Sprintf("PersistentVolume %s of its claim %s no longer exists", claim.Spec.VolumeName, claim.Name), nil
	case claim.Spec.VolumeName == "":
		return "", nil
	}
	pv := &corev1.PersistentVolume{}
	err := c.Live.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)
	switch {
	case apierrors.IsForbidden(err):
		return "", nil // it can't be known
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("PersistentVolume %s of its claim %s no longer exists", claim.Spec.VolumeName, claim.Name), nil
	case err != nil:
		return "", err
	}
	without, err := c.withoutNode(ctx, pv)
	if !without {
		return "", err
	}
	return fmt.Sprintf("PersistentVolume %s of its claim %s is on a node that was deleted", pv.Name, claim.Name), nil
}

// end is why a pod's etcd ends that is started again and again, and the text that says so.
func end(pod *corev1.Pod) (diagnose.End, string) {
	if pod == nil || !diagnose.CrashLooping(pod, operand.ComponentEtcd) {
		return diagnose.OtherEnd, ""
	}
	return diagnose.EtcdEnd(pod)
}

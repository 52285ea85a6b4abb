package recovery

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/backup"
	"github.com/clusterregistry/operator/internal/diagnose"
)

// hangs is how long after its grace period a pod is taken for one whose node is gone, as by the
// operator.
const hangs = 2 * time.Minute

// inTheWay returns what keeps the operator from recovering the registry, and what to do.
func (s *scene) inTheWay() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	registry, lost := s.registry, s.registry.Status.Recovery
	if registry.DeletionTimestamp != nil {
		say("the registry is being deleted, and nothing of it is recovered")
	}
	if registry.Spec.Paused {
		say("spec.paused is true, and nothing is changed until it is false (%s)", s.patch(`{"spec":{"paused":false}}`))
	}
	if lost.Phase == "" {
		ready := s.condition()
		switch {
		case ready == nil:
			say("the operator has not reported of etcd since: an approval does nothing until it does")
		case !slices.Contains([]string{v1alpha1.ReasonQuorumLost, v1alpha1.ReasonRecovering, v1alpha1.ReasonWentBack}, ready.Reason):
			say("the operator is not certain of the loss at the moment, and an approval does nothing until it is. EtcdReady is %s: %s: %s", ready.Status, ready.Reason, ready.Message)
		}
		if err := s.refused(); err != nil {
			say("spec.recovery does nothing yet: %s", err)
		}
		for i := range s.pods {
			if why := s.blocks(&s.pods[i]); why != "" {
				say("%s", why)
			}
		}
	}
	return out
}

// blocks says why a pod may not terminate when the operator stops it, which it waits for; nothing
// of one that will.
func (s *scene) blocks(pod *corev1.Pod) string {
	name := pod.Spec.NodeName
	if name == "" || diagnose.Ready(pod) {
		return ""
	}
	hanging := pod.DeletionTimestamp != nil && s.now.Sub(pod.DeletionTimestamp.Time) > hangs
	found := s.nodes[name]
	what := ""
	switch {
	case found.deleted:
		return fmt.Sprintf("pod %s is on node %s, which was deleted: the host cluster removes the pod next", pod.Name, name)
	case hanging && found.answers:
		return fmt.Sprintf("pod %s does not terminate, although node %s, on which it is, answers: see \"kubectl -n %s describe pod %s\". Do not delete it by force", pod.Name, name, pod.Namespace, pod.Name)
	case hanging:
		what = fmt.Sprintf("pod %s does not terminate: node %s, on which it is, may be gone", pod.Name, name)
	case !found.answers && found.unknown == nil:
		what = fmt.Sprintf("pod %s is on node %s, which does not answer", pod.Name, name)
	default:
		return ""
	}
	what += ", and the pod may still run there. Nothing is recovered before it has terminated for certain. Do not delete it by force. Bring the node back or, when you know that the pod does not run any more, "
	taint := fmt.Sprintf("taint that Node (kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute)", name)
	if s.left(pod.Name) {
		return what + taint + ". Delete that Node only to give up the data of this member, which may be on its disk"
	}
	return what + "delete that Node, or " + taint
}

// left reports whether a pod is of a member whose data is left.
func (s *scene) left(pod string) bool {
	return slices.ContainsFunc(s.registry.Status.Recovery.Members, func(m v1alpha1.RecoveryMember) bool { return m.Name == pod && !m.DataGone })
}

// remains says of a pod that has not terminated yet how it is.
func (s *scene) remains(pod *corev1.Pod) string {
	out := "pod " + pod.Name
	if pod.Spec.NodeName != "" {
		out += " on node " + pod.Spec.NodeName
	}
	if pod.DeletionTimestamp == nil {
		return out
	}
	if pod.DeletionTimestamp.After(s.now) {
		return out + ", which is terminating"
	}
	return out + ", which was to have terminated " + backup.Ago(pod.DeletionTimestamp, s.now)
}

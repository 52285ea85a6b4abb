package clusterregistry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// The components that have pods.
const (
	componentEtcd   = "etcd"
	componentServer = "server"
)

// pods returns the pods of a component, by name.
func (r *Reconciler) pods(ctx context.Context, s *scope, component string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := r.Client.List(ctx, list, client.InNamespace(s.registry.Namespace), client.MatchingLabels{
		operatorv1alpha1.LabelInstance: s.registry.Name, operatorv1alpha1.LabelComponent: component})
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, err
}

func ready(pod *corev1.Pod) bool { return readiness(pod) != nil }

// readiness returns the condition of a pod that is ready, nil of one that is not.
func readiness(pod *corev1.Pod) *corev1.PodCondition {
	for i, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// podProblem says what holds up a pod that does not serve, as far as the pod
// tells.
func podProblem(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return fmt.Sprintf("pod %s on node %s ends", pod.Name, pod.Spec.NodeName)
	}
	if problem := containersProblem(pod); problem != "" {
		return problem
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s finds no node: %s", pod.Name, condition.Message)
		}
	}
	switch {
	case pod.Spec.NodeName == "":
		return fmt.Sprintf("pod %s is being given a node", pod.Name)
	case pod.Status.Phase == corev1.PodRunning:
		return fmt.Sprintf("pod %s on node %s is running, but not ready", pod.Name, pod.Spec.NodeName)
	}
	return fmt.Sprintf("pod %s on node %s is being started", pod.Name, pod.Spec.NodeName)
}

// containersProblem returns what is wrong with the first container that can't be
// started or has failed, nothing when there is none.
func containersProblem(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if ended := failure(status); ended != nil && ended.Reason == reasonOOMKilled {
			return memoryProblem(pod, status, ended)
		}
		if problem := containerProblem(status); problem != "" {
			return fmt.Sprintf("pod %s: %s", pod.Name, problem)
		}
	}
	return ""
}

// containerProblem returns what is wrong with a container: why it can't be
// started, or how it ended last.
func containerProblem(status corev1.ContainerStatus) string {
	if ended := failure(status); ended != nil {
		return fmt.Sprintf("container %s ended with code %d: %s", status.Name, ended.ExitCode, lastLines(ended.Message))
	}
	waiting := status.State.Waiting
	if waiting == nil || waiting.Message == "" {
		return "" // on its way
	}
	return fmt.Sprintf("container %s waits (%s): %s", status.Name, waiting.Reason, waiting.Message)
}

// failure returns how a container failed that does not run, nil when it did not.
func failure(status corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	ended := status.State.Terminated
	if ended == nil && status.State.Waiting != nil {
		ended = status.LastTerminationState.Terminated
	}
	if ended == nil || ended.ExitCode == 0 {
		return nil
	}
	return ended
}

// lastLines keeps the end of what a container said, which tells why it ended.
func lastLines(message string) string {
	const most = 400
	message = strings.TrimSpace(message)
	if len(message) > most {
		message = "..." + message[len(message)-most:]
	}
	return strings.ReplaceAll(message, "\n", " | ")
}

// guardRefuses returns what the guard of a member says that it holds back, or
// nothing.
func guardRefuses(pods []corev1.Pod) string {
	for i := range pods {
		if status := refusal(&pods[i]); status != nil {
			return fmt.Sprintf("pod %s: %s", pods[i].Name, containerProblem(*status))
		}
	}
	return ""
}

// crashing reports whether etcd has failed at so many starts that kubelet waits
// before it tries again.
func crashing(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		waiting := status.State.Waiting
		return status.Name == componentEtcd && waiting != nil && waiting.Reason == "CrashLoopBackOff" && failure(status) != nil
	})
}

// running returns the pods that have not ended for good, as those have that were
// evicted for want of a node's resources: the host keeps them for a while.
func running(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	})
}

// refusal returns the container in which the guard refuses to let etcd start, nil
// when it does not: that of etcd, or in pods of layout v1 one before it.
func refusal(pod *corev1.Pod) *corev1.ContainerStatus {
	for i, status := range pod.Status.InitContainerStatuses {
		if status.Name == "guard" && failure(status) != nil {
			return &pod.Status.InitContainerStatuses[i]
		}
	}
	for i, status := range pod.Status.ContainerStatuses {
		if ended := failure(status); status.Name == componentEtcd && ended != nil && ended.ExitCode == contract.GuardRefused {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

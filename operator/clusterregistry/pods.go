package clusterregistry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
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

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// podProblem says what holds up a pod that does not serve, as far as the pod
// tells.
func podProblem(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return fmt.Sprintf("pod %s on node %s ends", pod.Name, pod.Spec.NodeName)
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if problem := containerProblem(status); problem != "" {
			return fmt.Sprintf("pod %s: %s", pod.Name, problem)
		}
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

// containerProblem returns what is wrong with a container: why it can't be
// started, or how it ended last.
func containerProblem(status corev1.ContainerStatus) string {
	ended := status.State.Terminated
	if ended == nil && status.State.Waiting != nil {
		ended = status.LastTerminationState.Terminated
	}
	if ended != nil && ended.ExitCode != 0 {
		return fmt.Sprintf("container %s ended with code %d: %s", status.Name, ended.ExitCode, lastLines(ended.Message))
	}
	waiting := status.State.Waiting
	if waiting == nil || waiting.Message == "" {
		return "" // on its way
	}
	return fmt.Sprintf("container %s waits (%s): %s", status.Name, waiting.Reason, waiting.Message)
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
	for _, pod := range pods {
		for _, status := range pod.Status.InitContainerStatuses {
			if problem := containerProblem(status); status.Name == "guard" && strings.Contains(problem, "ended with code") {
				return fmt.Sprintf("pod %s: %s", pod.Name, problem)
			}
		}
	}
	return ""
}

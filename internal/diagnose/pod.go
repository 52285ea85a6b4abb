package diagnose

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Ready reports whether a pod is ready.
func Ready(pod *corev1.Pod) bool { return ReadyCondition(pod) != nil }

// ReadyCondition returns the condition Ready of a pod that is ready, which says since
// when, and nil for one that is not.
func ReadyCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// CrashLooping reports whether a container has failed at so many starts that kubelet
// waits before it starts it again.
func CrashLooping(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		waiting := status.State.Waiting
		return status.Name == container && waiting != nil && waiting.Reason == "CrashLoopBackOff" && Failure(status) != nil
	})
}

// Pod says why a pod is not ready, as far as its status has it: that it is
// terminating, the first container that fails, or how far its start is. It is never
// empty; ask it only of pods that are not ready.
func Pod(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return fmt.Sprintf("pod %s on node %s is terminating", pod.Name, pod.Spec.NodeName)
	}
	if problem := containers(pod); problem != "" {
		return problem
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s can't be scheduled: %s", pod.Name, condition.Message)
		}
	}
	switch {
	case pod.Spec.NodeName == "":
		return fmt.Sprintf("pod %s is waiting to be scheduled", pod.Name)
	case lingering(pod) != "":
		return fmt.Sprintf("pod %s does not complete, since container %s keeps running, which a webhook has added, as that of a service mesh does: have it leave out this namespace", pod.Name, lingering(pod))
	case pod.Status.Phase == corev1.PodRunning:
		return fmt.Sprintf("pod %s on node %s is running, but not ready", pod.Name, pod.Spec.NodeName)
	}
	return fmt.Sprintf("pod %s on node %s is starting", pod.Name, pod.Spec.NodeName)
}

// lingering returns the container of a Job's pod that runs beside one that is done: ours have one
// container that is not an init container. It is empty when none does.
func lingering(pod *corev1.Pod) string {
	done := pod.Spec.RestartPolicy != corev1.RestartPolicyAlways && slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.State.Terminated != nil && status.State.Terminated.ExitCode == 0
	})
	for _, status := range pod.Status.ContainerStatuses {
		if done && status.State.Running != nil {
			return status.Name
		}
	}
	return ""
}

// containers returns what is wrong with the first container of a pod that can't be
// started or has failed, in the order in which they start; empty when there is none.
func containers(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if terminated := Failure(status); terminated != nil && terminated.Reason == reasonOOMKilled {
			return outOfMemory(pod, status, terminated)
		}
		if problem := Container(status); problem != "" {
			return fmt.Sprintf("pod %s: %s", pod.Name, problem)
		}
	}
	return ""
}

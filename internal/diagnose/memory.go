package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// reasonOOMKilled is kubelet's reason for a container that was killed at its
	// memory limit.
	reasonOOMKilled = "OOMKilled"
	// memoryRecent is how long a container that was OOM-killed and runs again is
	// still reported: the same load will kill it again.
	memoryRecent = time.Hour
)

// memoryField has the field of a ClusterRegistry that raises the memory limit of
// each container.
var memoryField = map[string]string{
	"server": "spec.server.resources.limits.memory",
	"etcd":   "spec.etcd.resources.limits.memory",

	"controller": "spec.controllers.resources.limits.memory",
}

// OutOfMemory names the containers whose last termination was an OOM kill within the
// hour before now, whether they run again or not: when that was, at which limit, and
// which field raises it. It is empty when there are none.
func OutOfMemory(pods []corev1.Pod, now time.Time) string {
	var out []string
	for i := range pods {
		for _, status := range pods[i].Status.ContainerStatuses {
			if terminated := oomKilled(status); terminated != nil && now.Sub(terminated.FinishedAt.Time) < memoryRecent {
				out = append(out, outOfMemory(&pods[i], status, terminated))
			}
		}
	}
	return strings.Join(out, "; ")
}

// oomKilled returns the last termination of a container if that was an OOM kill.
func oomKilled(status corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	last := status.State.Terminated
	if last == nil {
		last = status.LastTerminationState.Terminated
	}
	if last == nil || last.Reason != reasonOOMKilled {
		return nil
	}
	return last
}

// outOfMemory says of one OOM kill when and at which limit it was, and what to raise.
func outOfMemory(pod *corev1.Pod, status corev1.ContainerStatus, terminated *corev1.ContainerStateTerminated) string {
	limit := "its memory limit"
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == status.Name })
	if i >= 0 && !pod.Spec.Containers[i].Resources.Limits.Memory().IsZero() {
		limit += ", " + pod.Spec.Containers[i].Resources.Limits.Memory().String()
	}
	problem := fmt.Sprintf("pod %s: container %s was killed at %s (OOMKilled, %s, %d restarts)", pod.Name, status.Name, limit, terminated.FinishedAt.UTC().Format(time.RFC3339), status.RestartCount)
	if field := memoryField[status.Name]; field != "" {
		problem += ": raise " + field
	}
	return problem
}

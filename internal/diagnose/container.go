package diagnose

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Container returns what is wrong with a container: how it failed, or else why it
// can't be started. It is empty for one that runs, or that kubelet is starting.
func Container(status corev1.ContainerStatus) string {
	if terminated := Failure(status); terminated != nil {
		return fmt.Sprintf("container %s exited with code %d: %s%s", status.Name, terminated.ExitCode, lastLines(logged(terminated.Message)), diskFull(status.Name, terminated))
	}
	waiting := status.State.Waiting
	if waiting == nil || waiting.Message == "" {
		return "" // kubelet is starting it
	}
	return fmt.Sprintf("container %s is waiting (%s): %s", status.Name, waiting.Reason, waiting.Message)
}

// diskFull says what to do about an etcd member whose disk is full, which kubelet starts
// again and again; nothing about all others.
func diskFull(container string, terminated *corev1.ContainerStateTerminated) string {
	if container != etcdContainer || !strings.Contains(terminated.Message, "no space left on device") {
		return ""
	}
	return "; its volume is full: raise spec.etcd.storage.size, or make room on the disk that the volume is on"
}

// Failure returns how a container failed that does not run now. It is nil for one
// that runs, whatever happened before, and for one that succeeded.
func Failure(status corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	terminated := status.State.Terminated
	if terminated == nil && status.State.Waiting != nil {
		terminated = status.LastTerminationState.Terminated
	}
	if terminated == nil || terminated.ExitCode == 0 {
		return nil
	}
	return terminated
}

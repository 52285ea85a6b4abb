package diagnose

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// etcdContainer runs the guard, which then becomes etcd.
	etcdContainer = "etcd"
	// guardContainer is the init container that ran the guard in layout v1.
	guardContainer = "guard"
)

// Guard returns why the guard keeps the first etcd member that it holds from starting,
// empty when all may start.
func Guard(pods []corev1.Pod) string {
	for i := range pods {
		if status := refusal(&pods[i]); status != nil {
			return fmt.Sprintf("pod %s: %s", pods[i].Name, Container(*status))
		}
	}
	return ""
}

// GuardRefuses reports whether the guard keeps etcd from starting in a pod.
func GuardRefuses(pod *corev1.Pod) bool { return refusal(pod) != nil }

// refusal returns the container in which the guard refuses to let etcd start, nil
// when it does not.
func refusal(pod *corev1.Pod) *corev1.ContainerStatus {
	for i, status := range pod.Status.InitContainerStatuses {
		if status.Name == guardContainer && Failure(status) != nil {
			return &pod.Status.InitContainerStatuses[i]
		}
	}
	for i, status := range pod.Status.ContainerStatuses {
		// etcd itself ends with another code.
		if terminated := Failure(status); status.Name == etcdContainer && terminated != nil && terminated.ExitCode == contract.GuardRefused {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

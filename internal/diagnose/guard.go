package diagnose

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterregistry/operator/internal/contract"
)

// etcdContainer runs the guard, which then becomes etcd.
const etcdContainer = "etcd"

// Guard returns why the guard refuses to let the first etcd member that it holds start,
// empty when it refuses none: one that only waits, as for a record that is late, is a pod
// that is not ready.
func Guard(pods []corev1.Pod) string {
	for i := range pods {
		if status := refusal(&pods[i]); status != nil {
			return fmt.Sprintf("pod %s: %s", pods[i].Name, Container(*status))
		}
	}
	return ""
}

// GuardRefuses reports whether the guard refuses to let etcd start in a pod, since data is
// lost or not the member's.
func GuardRefuses(pod *corev1.Pod) bool { return refusal(pod) != nil }

// DataLost reports whether the guard refuses since the member's data is lost or damaged, and
// not just elsewhere.
func DataLost(pod *corev1.Pod) bool {
	status := refusal(pod)
	return status != nil && Failure(*status).ExitCode == contract.GuardRefused
}

// refusal returns the container in which the guard refuses to let etcd start, nil
// when it does not.
func refusal(pod *corev1.Pod) *corev1.ContainerStatus {
	for i, status := range pod.Status.ContainerStatuses {
		// etcd itself ends with another code, and so does a guard that only waits.
		if terminated := Failure(status); status.Name == etcdContainer && terminated != nil && (terminated.ExitCode == contract.GuardRefused || terminated.ExitCode == contract.GuardForeign) {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

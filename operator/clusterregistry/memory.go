package clusterregistry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

const (
	// reasonOOMKilled is the host's reason for a container that reached its limit of
	// memory.
	reasonOOMKilled = "OOMKilled"
	// memoryRecent is how long a condition tells of a container that was killed so
	// and runs again: it will be once more under the same load.
	memoryRecent = time.Hour
)

// memoryField has the field that raises the limit of memory of each container.
var memoryField = map[string]string{
	"server": "spec.server.resources.limits.memory",
	"etcd":   "spec.etcd.resources.limits.memory",
}

// outOfMemory says of the containers that were killed at their limit of memory, are
// down for that or run again since a short while, when that was and what to raise.
func (s *scope) outOfMemory(pods []corev1.Pod) string {
	var out []string
	for i := range pods {
		for _, status := range pods[i].Status.ContainerStatuses {
			if ended := killedForMemory(status); ended != nil && s.now.Sub(ended.FinishedAt.Time) < memoryRecent {
				out = append(out, memoryProblem(&pods[i], status, ended))
			}
		}
	}
	return strings.Join(out, "; ")
}

// killedForMemory returns how a container ended last, if that was at its limit of
// memory.
func killedForMemory(status corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	for _, ended := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
		if ended != nil {
			if ended.Reason == reasonOOMKilled {
				return ended
			}
			return nil
		}
	}
	return nil
}

func memoryProblem(pod *corev1.Pod, status corev1.ContainerStatus, ended *corev1.ContainerStateTerminated) string {
	limit := "its limit of memory"
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == status.Name })
	if i >= 0 && !pod.Spec.Containers[i].Resources.Limits.Memory().IsZero() {
		limit += ", " + pod.Spec.Containers[i].Resources.Limits.Memory().String()
	}
	problem := fmt.Sprintf("pod %s: container %s was killed at %s (OOMKilled, %s, %d restarts)", pod.Name, status.Name, limit, ended.FinishedAt.UTC().Format(time.RFC3339), status.RestartCount)
	if field := memoryField[status.Name]; field != "" {
		problem += ": raise " + field
	}
	return problem
}

// memoryNoted returns the verdict of a part that is ready again with a note that it was
// short of memory.
func (s *scope) memoryNoted(v verdict.Verdict, pods []corev1.Pod) verdict.Verdict {
	if problem := s.outOfMemory(pods); problem != "" {
		return v.Note(operatorv1alpha1.ReasonOutOfMemory, problem)
	}
	return v
}

// orOutOfMemory returns a reason, unless the part does not serve for want of memory.
func (s *scope) orOutOfMemory(reason string, pods []corev1.Pod) string {
	if s.outOfMemory(pods) != "" {
		return operatorv1alpha1.ReasonOutOfMemory
	}
	return reason
}

// serverMemory returns the limit of memory of the servers that are wanted, zero when
// there is none or it is not known.
func (s *scope) serverMemory() int64 {
	if s.rendered == nil {
		return 0
	}
	for _, object := range s.rendered.Stages[render.StageServer] {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, one := range containers {
			container, _ := one.(map[string]any)
			text, _, _ := unstructured.NestedString(container, "resources", "limits", "memory")
			if limit, err := resource.ParseQuantity(text); err == nil && container["name"] == componentServer {
				return limit.Value()
			}
		}
	}
	return 0
}

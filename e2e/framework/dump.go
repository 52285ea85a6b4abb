package framework

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dump logs what a person would ask for first: events, pods and their logs.
func (e *Env) dump() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out strings.Builder
	fmt.Fprintf(&out, "what is in namespace %s:\n", e.Namespace)
	events, err := e.Kubernetes.CoreV1().Events(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(&out, "events: %v\n", err)
	} else {
		for _, event := range events.Items {
			fmt.Fprintf(&out, "event %s %s/%s %s: %s\n", event.LastTimestamp.Format(time.TimeOnly), event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message)
		}
	}
	pods, err := e.Kubernetes.CoreV1().Pods(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(&out, "pods: %v\n", err)
		pods = &corev1.PodList{}
	}
	for _, pod := range pods.Items {
		fmt.Fprintf(&out, "pod %s on %q is %s\n", pod.Name, pod.Spec.NodeName, pod.Status.Phase)
		for _, condition := range pod.Status.Conditions {
			if condition.Status != corev1.ConditionTrue {
				fmt.Fprintf(&out, "  %s=%s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
			}
		}
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			log, err := e.logs(ctx, pod.Name, &corev1.PodLogOptions{Container: container.Name, TailLines: new(int64(40))})
			if err != nil {
				log = err.Error()
			}
			fmt.Fprintf(&out, "  log of %s:\n    %s\n", container.Name, strings.ReplaceAll(strings.TrimSpace(log), "\n", "\n    "))
		}
	}
	e.t.Log(out.String())
}

func (e *Env) logs(ctx context.Context, pod string, options *corev1.PodLogOptions) (string, error) {
	out, err := e.Kubernetes.CoreV1().Pods(e.Namespace).GetLogs(pod, options).DoRaw(ctx)
	return string(out), err
}

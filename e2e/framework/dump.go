package framework

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// dump logs what a person would ask for first: registries, events, pods and
// their logs, and the operator's.
func (e *Env) dump() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out strings.Builder
	fmt.Fprintf(&out, "what is in namespace %s:\n", e.Namespace)
	e.dumpRegistries(ctx, &out)
	events, err := e.Kubernetes.CoreV1().Events(e.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Fprintf(&out, "events: %v\n", err)
	} else {
		for _, event := range events.Items {
			fmt.Fprintf(&out, "event %s %s/%s %s: %s\n", event.LastTimestamp.Format(time.TimeOnly), event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message)
		}
	}
	e.dumpPods(ctx, &out, e.Namespace, metav1.ListOptions{})
	e.dumpPods(ctx, &out, OperatorNamespace, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + operatorName})
	e.t.Log(out.String())
}

func (e *Env) dumpRegistries(ctx context.Context, out *strings.Builder) {
	var registries operatorv1alpha1.ClusterRegistryList
	if err := e.Client.List(ctx, &registries, client.InNamespace(e.Namespace)); err != nil && !meta.IsNoMatchError(err) {
		fmt.Fprintf(out, "registries: %v\n", err)
	}
	for i := range registries.Items {
		fmt.Fprintf(out, "ClusterRegistry %s:\n%s\n", registries.Items[i].Name, conditions(&registries.Items[i]))
	}
}

func (e *Env) dumpPods(ctx context.Context, out *strings.Builder, namespace string, which metav1.ListOptions) {
	pods, err := e.Kubernetes.CoreV1().Pods(namespace).List(ctx, which)
	if err != nil {
		fmt.Fprintf(out, "pods: %v\n", err)
		pods = &corev1.PodList{}
	}
	for _, pod := range pods.Items {
		fmt.Fprintf(out, "pod %s on %q is %s\n", pod.Name, pod.Spec.NodeName, pod.Status.Phase)
		for _, condition := range pod.Status.Conditions {
			if condition.Status != corev1.ConditionTrue {
				fmt.Fprintf(out, "  %s=%s %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
			}
		}
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			log, err := e.logs(ctx, namespace, pod.Name, &corev1.PodLogOptions{Container: container.Name, TailLines: new(int64(40))})
			if err != nil {
				log = err.Error()
			}
			fmt.Fprintf(out, "  log of %s:\n    %s\n", container.Name, strings.ReplaceAll(strings.TrimSpace(log), "\n", "\n    "))
		}
	}
}

func (e *Env) logs(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (string, error) {
	out, err := e.Kubernetes.CoreV1().Pods(namespace).GetLogs(pod, options).DoRaw(ctx)
	return string(out), err
}

package framework

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// Restricted is a container's security context as Pod Security's level
// "restricted" demands it.
func Restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		RunAsNonRoot:             new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// Run runs a command in a new pod to its end and returns what it printed. The
// test fails when the command does.
func (e *Env) Run(name, image string, command ...string) string {
	e.t.Helper()
	e.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy:                corev1.RestartPolicyNever,
			AutomountServiceAccountToken: new(false),
			Containers:                   []corev1.Container{{Name: "main", Image: image, Command: command, SecurityContext: Restricted()}},
		},
	})
	e.Eventually("pod "+name+" to end", func(ctx context.Context) error {
		var pod corev1.Pod
		if err := e.Get(ctx, name, &pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("it is %s: %v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return nil
	})
	out, err := e.logs(e.t.Context(), e.Namespace, name, &corev1.PodLogOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	var pod corev1.Pod
	if err := e.Get(e.t.Context(), name, &pod); err != nil {
		e.t.Fatal(err)
	}
	if pod.Status.Phase != corev1.PodSucceeded {
		e.t.Fatalf("%v in pod %s failed: %s", command, name, out)
	}
	return out
}

// Exec runs a command in a running pod's first container, for a minute at most: a connection
// that is lost says nothing.
func (e *Env) Exec(ctx context.Context, pod string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request := e.Kubernetes.CoreV1().RESTClient().Post().Resource("pods").Namespace(e.Namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, clientgoscheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(e.Config, "GET", request.URL().String())
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr}); err != nil {
		return stdout.String(), fmt.Errorf("%v in pod %s: %w: %s", command, pod, err, stderr.String())
	}
	return stdout.String(), nil
}

// PodsOf returns a registry's pods, or an error while one of them has to end: until it has, a
// list of the pods is out of date before it is used. A registry is Ready while servers that
// were replaced still drain.
func (e *Env) PodsOf(ctx context.Context, registry *operatorv1alpha1.ClusterRegistry, which ...client.ListOption) ([]corev1.Pod, error) {
	var pods corev1.PodList
	which = append(which, client.InNamespace(registry.Namespace), client.MatchingLabels{operatorv1alpha1.LabelInstance: registry.Name})
	if err := e.Client.List(ctx, &pods, which...); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil {
			return nil, fmt.Errorf("pod %s has not ended yet", pods.Items[i].Name)
		}
	}
	return pods.Items, nil
}

// Pods waits until none of a registry's pods has to end, and returns them.
func (e *Env) Pods(registry *operatorv1alpha1.ClusterRegistry, which ...client.ListOption) (pods []corev1.Pod) {
	e.t.Helper()
	e.Eventually("the replaced pods of "+registry.Name+" to end", func(ctx context.Context) (err error) {
		pods, err = e.PodsOf(ctx, registry, which...)
		return err
	})
	return pods
}

// PodReady returns why a pod is not Ready, or nil.
func (e *Env) PodReady(ctx context.Context, name string) error {
	var pod corev1.Pod
	if err := e.Get(ctx, name, &pod); err != nil {
		return err
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("pod %s is %s: %v", name, pod.Status.Phase, pod.Status.ContainerStatuses)
}

// Etcdctl runs that program in the pod of a member of a registry's own etcd, on
// this member.
func (e *Env) Etcdctl(ctx context.Context, member string, args ...string) (string, error) {
	return e.Exec(ctx, member, append([]string{"etcdctl", "--endpoints=https://localhost:2379", "--cacert=/trust/etcd-ca.crt", "--cert=/server/tls.crt", "--key=/server/tls.key"}, args...)...)
}

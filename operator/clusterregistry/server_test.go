package clusterregistry

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/render"
)

// serversOf returns a Deployment of servers that was rolled out, and a pod of it.
func serversOf(replicas int32) (*appsv1.Deployment, *corev1.Pod) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "server:v0.1.0"}}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-server"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: template},
		Status: appsv1.DeploymentStatus{Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet-server-x", Labels: map[string]string{operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelComponent: componentServer}}, Spec: template.Spec}
	return deployment, pod
}

// rendering has a scope's servers rendered as a Deployment, of which only the name
// matters.
func rendering(s *scope) {
	deployment := &unstructured.Unstructured{}
	deployment.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	deployment.SetNamespace("team")
	deployment.SetName("fleet-server")
	s.rendered = &render.Result{Stages: map[render.Stage][]*unstructured.Unstructured{render.StageServer: {deployment}}}
}

// TestServersScaledAway is about a paused registry whose Deployment somebody has
// scaled to 0, at a moment when its last pod still ends.
func TestServersScaledAway(t *testing.T) {
	deployment, pod := serversOf(0)
	pod.DeletionTimestamp, pod.Finalizers = timeAt(metav1.Now().Time), []string{"kubelet/here"}
	for what, objects := range map[string][]client.Object{"one pod ends": {deployment, pod}, "none is left": {deployment}} {
		s := look(t, "{spec: {mode: Aggregated, paused: true, server: {replicas: 2}}, status: {version: v0.1.0"+complete+"}}")
		s.readOnly = true
		rendering(s)
		r := reading(t, objects...)
		r.Applier = apply.New(r.Client, r.Live)
		v := r.server(t.Context(), s)
		if v.Complete() || v.Reason != operatorv1alpha1.ReasonReplicasNotReady || !strings.Contains(v.Message, "0 of 2 servers ready") || s.registry.Status.Version != "v0.1.0" {
			t.Errorf("%s: %+v, version %s", what, v, s.registry.Status.Version)
		}
	}
}

// TestCrashes gives a new server up at its third crash.
func TestCrashes(t *testing.T) {
	crashed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "no"}}
	backOff := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, test := range []struct {
		reason   string
		restarts int32
		now      corev1.ContainerState
		failed   bool
	}{
		{"the first crash", 0, crashed, false},
		{"the second", 1, crashed, false},
		{"it runs after the second", 2, running, false},
		{"the third", 2, crashed, true},
		{"the third, and it waits to be restarted", 2, backOff, true},
		{"it runs after the third: it may have come to stay", 3, running, false},
	} {
		deployment, pod := serversOf(1)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "server", RestartCount: test.restarts, State: test.now, LastTerminationState: crashed}}
		s := reading(t).serversFailure(t.Context(), deployment, []corev1.Pod{*pod})
		if (s != "") != test.failed {
			t.Errorf("%s: %q", test.reason, s)
		}
	}
}

// TestUpdating counts the pods that are still to go.
func TestUpdating(t *testing.T) {
	for want, status := range map[string]appsv1.DeploymentStatus{
		"0 of 3 updated, 3 old replicas terminating": {Replicas: 3},
		"2 of 3 updated, 1 old replica terminating":  {Replicas: 3, UpdatedReplicas: 2},
		"3 of 3 updated": {Replicas: 3, UpdatedReplicas: 3},
		"1 of 3 updated": {UpdatedReplicas: 1}, // as when it was scaled down meanwhile
	} {
		if got := updating(status, 3); got != want {
			t.Errorf("%+v: %q", status, got)
		}
	}
}

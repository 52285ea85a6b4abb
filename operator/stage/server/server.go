package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Run applies the servers and observes them.
func (s *Stage) Run(ctx context.Context) pass.Servers {
	s.found = pass.Servers{}
	s.found.Verdict = s.run(ctx)
	return s.found
}

func (s *Stage) run(ctx context.Context) verdict.Verdict {
	// What runs is to be known whatever becomes of what is applied.
	pods, answers, unknown := s.look(ctx)
	objects, turn := s.turn(ctx)
	if err := apply.IgnoreReadOnly(s.Apply(ctx, objects...)); err != nil {
		return unapplied(err)
	}
	deployment := &appsv1.Deployment{}
	if v := s.Applied(ctx, render.StageServer, deployment); !v.Complete() {
		if s.Held.State == verdict.Blocked && v.Reason == operatorv1alpha1.ReasonWaiting {
			return s.Held // it does not exist, and is not to be made
		}
		return v
	}
	if unknown != nil {
		return verdict.Failed(unknown)
	}
	s.found.Failure = s.failure(ctx, deployment, pods)
	status := s.report(deployment)
	if v := s.renewTokens(ctx, deployment, pods); !v.Complete() {
		return v.DegradedIf(s.found.Answering > 0)
	}
	if v := s.ready(ctx, deployment, status, pods, answers); !v.Complete() || !turn.Complete() {
		if v.Complete() {
			return turn.DegradedIf(true)
		}
		return v
	}
	s.Registry.Status.Version = answers[0].Version
	if !s.Upgrading && !s.ReadOnly() {
		if err := s.Identity.WriteRelease(ctx, s.Registry.Status.Version); err != nil {
			return verdict.Failed(err)
		}
	}
	if !s.Held.Complete() {
		return s.Held
	}
	return operand.NoteMemory(done, operand.Staying(pods), s.Now)
}

// look asks the servers that kubelet finds ready.
func (s *Stage) look(ctx context.Context) ([]corev1.Pod, []servers.Answer, error) {
	pods, err := s.Pods(ctx, operand.ComponentServer)
	if err != nil {
		return nil, nil, err
	}
	pods = operand.Running(pods)
	answers, err := s.AskPods(ctx, pods, s.ServerName(), s.Serving)
	if err != nil {
		return nil, nil, err
	}
	answering := slices.DeleteFunc(slices.Clone(answers), func(a servers.Answer) bool { return a.Err != nil })
	s.found.Asked, s.found.Ready, s.found.Answering = true, len(answers), len(answering)
	s.found.Before = before(s.Rendered.Stages[render.StageServer], pods)
	return pods, answers, nil
}

// before names a pod that is terminating, of another image than those of rendered objects.
func before(rendered []*unstructured.Unstructured, pods []corev1.Pod) string {
	var images []any
	for _, object := range rendered {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, container := range containers {
			images = append(images, container.(map[string]any)["image"])
		}
	}
	for i := range pods {
		is := func(container corev1.Container) bool { return slices.Contains(images, any(container.Image)) }
		if pods[i].DeletionTimestamp != nil && !slices.ContainsFunc(pods[i].Spec.Containers, is) {
			return "pod " + pods[i].Name
		}
	}
	return ""
}

// unapplied is the verdict of an error in applying the servers. What they need in kube-system,
// nothing in the spec can change: where the platform closes that namespace, it is the mode that has
// to be another one.
func unapplied(err error) verdict.Verdict {
	v, what := verdict.Failed(err), (*apply.Unapplied)(nil)
	if v.Reason == operatorv1alpha1.ReasonHostRefused && errors.As(err, &what) && what.Object.Namespace == metav1.NamespaceSystem {
		v.Message += ". The servers of an Aggregated registry need this object to know the host cluster's front proxy. If the operator has its Role in kube-system, the platform closes that namespace, as GKE Autopilot does: create a registry of mode Independent in place of this one, which needs nothing there"
	}
	return v
}

// report writes the servers' part of the status, and returns that of the Deployment as
// far as it is about what is rendered.
func (s *Stage) report(deployment *appsv1.Deployment) appsv1.DeploymentStatus {
	status, desired := deployment.Status, s.Registry.Spec.Server.Replicas
	if status.ObservedGeneration < deployment.Generation {
		status.UpdatedReplicas = 0 // they are of what was rendered before
	}
	s.Registry.Status.Server = operatorv1alpha1.ServerStatus{Replicas: status.Replicas, ReadyReplicas: int32(s.found.Answering), UpdatedReplicas: status.UpdatedReplicas}
	if status.ObservedGeneration < deployment.Generation || status.UpdatedReplicas < desired || status.Replicas > status.UpdatedReplicas {
		s.found.Rolling = fmt.Sprintf("servers: %d of %d updated", status.UpdatedReplicas, desired)
	}
	return status
}

// ready is done when as many servers as desired are of the latest template and of one
// release, and all of them answer.
func (s *Stage) ready(ctx context.Context, deployment *appsv1.Deployment, status appsv1.DeploymentStatus, pods []corev1.Pod, answers []servers.Answer) verdict.Verdict {
	// In a read-only pass, someone else may have scaled the Deployment.
	serving, desired := int32(s.found.Answering), s.Registry.Spec.Server.Replicas
	problems := s.Diagnoser().Pods(ctx, operand.Staying(pods))
	versions := map[string]bool{}
	for _, answer := range answers {
		if answer.Err != nil {
			problems = append(problems, fmt.Sprintf("pod %s is ready, but does not answer: %s", answer.Pod, answer.Err))
			continue
		}
		versions[answer.Version] = true
	}
	if s.found.Rolling != "" && len(problems) == 0 {
		problems = []string{updating(status, desired)}
	}
	if len(pods) == 0 || len(problems) == 0 && serving < desired {
		problems = []string{s.Diagnoser().Replicas(ctx, deployment)}
	}
	if len(problems) > 0 {
		reason := operand.MemoryReason(operatorv1alpha1.ReasonReplicasNotReady, operand.Staying(pods), s.Now)
		return verdict.Waiting(reason, "%d of %d servers ready: %s", min(serving, desired), desired, strings.Join(problems, "; ")).DegradedIf(serving > 0)
	}
	if len(versions) > 1 {
		return verdict.Waiting(operatorv1alpha1.ReasonReplicasNotReady, "the servers run different releases: %s", strings.Join(slices.Sorted(maps.Keys(versions)), ", ")).In(verdict.Soon).DegradedIf(true)
	}
	return done
}

// updating says how far a Deployment has replaced its pods.
func updating(status appsv1.DeploymentStatus, wanted int32) string {
	message := fmt.Sprintf("%d of %d updated", status.UpdatedReplicas, wanted)
	switch old := status.Replicas - status.UpdatedReplicas; {
	case old == 1:
		message += ", 1 old replica terminating"
	case old > 1:
		message += fmt.Sprintf(", %d old replicas terminating", old)
	}
	return message
}

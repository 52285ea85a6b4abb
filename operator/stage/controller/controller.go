package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"golang.org/x/mod/semver"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/internal/diagnose"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Run applies the controller, observes it and reads what it reports. Where something is
// wrong, the registry itself is available nevertheless: the verdict is Degraded.
func (s *Stage) Run(ctx context.Context) Found {
	s.found = Found{}
	s.found.Verdict = s.run(ctx).DegradedIf(true)
	return s.found
}

func (s *Stage) run(ctx context.Context) verdict.Verdict {
	if s.NotAllowed != "" {
		// Nothing of it is rendered, and what there was is pruned.
		return verdict.Waiting(operatorv1alpha1.ReasonNamespaceNotAllowed, "no controller runs: %s, and the controller's rights to Leases would reach that one; move the registry to a namespace of its own, or remove spec.controllers", s.NotAllowed).In(verdict.Resync)
	}
	on := render.Runnable(s.Registry)
	if len(on) == 0 {
		return s.refused()
	}
	if rendered(s.Objects) < 0 {
		return verdict.Failed(fmt.Errorf("the manifests of %s have no controller", s.Release.Version))
	}
	if s.TakenBy != "" {
		return s.withdraw(ctx)
	}
	held := s.heldBack()
	certified := s.certified(ctx, held != "")
	gated := !certified.Complete() && s.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent
	unbound, err := s.apply(ctx, held != "", !gated)
	if err != nil {
		return verdict.Failed(err)
	}
	if held == "" && gated {
		return s.led(ctx, certified)
	}
	deployment := &appsv1.Deployment{}
	switch v := s.Applied(ctx, render.StageController, deployment); {
	case v.Complete():
	case held != "" && v.Reason == operatorv1alpha1.ReasonWaiting:
		return verdict.Waiting(operatorv1alpha1.ReasonWaiting, "%s", held)
	default:
		return s.led(ctx, v)
	}
	pods, err := s.Pods(ctx, operand.ComponentController)
	if err != nil {
		return verdict.Failed(err)
	}
	known := s.wellKnown(ctx, on, deployment, operand.Running(pods), unbound)
	if v := s.refused(); !v.Complete() && (known.Complete() || known.Reason == operatorv1alpha1.ReasonRefused) {
		known = v // the function says the same, and knows less
	}
	if held == "" && !certified.Complete() && (known.Complete() || known.Reason == string(contract.FunctionStarting) || known.Reason == string(contract.FunctionFailing)) {
		known = certified // which the feed lacks
	}
	if !known.Complete() {
		return known
	}
	if held != "" {
		return verdict.Waiting(operatorv1alpha1.ReasonProgressing, "%s", held)
	}
	return operand.NoteMemory(known, pods, s.Now)
}

// refused says what of the spec the controller can't do, wherever it works.
func (s *Stage) refused() verdict.Verdict {
	for _, function := range s.Registry.Spec.Controllers.Functions() {
		if err := render.InvalidSelector(s.Registry.Spec.Controllers, function); err != nil {
			where := ""
			if slices.Contains(render.Runnable(s.Registry), function) {
				where = " everywhere"
			}
			return verdict.Waiting(operatorv1alpha1.ReasonRefused, "%s does not run%s: %s", function, where, err).In(verdict.Resync)
		}
	}
	if err := render.Unshown(s.Registry); err != nil {
		return verdict.Waiting(operatorv1alpha1.ReasonRefused, "exports does not run everywhere: %s", err).In(verdict.Resync)
	}
	if s.Unreached != "" {
		return verdict.Waiting(operatorv1alpha1.ReasonNamespaceNotAllowed, "%s", s.Unreached).In(verdict.Resync)
	}
	return done
}

// apply applies the Lease and then what is rendered, unless the servers come first. The
// Certificate is applied already, and without that of an independent registry the Deployment
// stays as it is: replicas that run have functions for which the present one has groups. That of
// the feed keeps no other function waiting. Bindings that the
// operator may not make are returned, and the rest is applied.
func (s *Stage) apply(ctx context.Context, serversFirst, certified bool) (unbound []*unstructured.Unstructured, err error) {
	if serversFirst {
		return nil, nil
	}
	if err := apply.IgnoreReadOnly(s.applyLease(ctx)); err != nil {
		return nil, err
	}
	for _, object := range s.Rendered.Stages[render.StageController] {
		kind := object.GetKind()
		if kind == certmanagerv1.CertificateKind || kind == "Deployment" && !certified {
			continue
		}
		err := apply.IgnoreReadOnly(s.Apply(ctx, object))
		if strings.HasSuffix(kind, "RoleBinding") && apierrors.IsForbidden(err) {
			unbound = append(unbound, object)
		} else if err != nil {
			return nil, err
		}
	}
	return unbound, nil
}

// heldBack says what the controller of the rendered release waits for, nothing when it
// may come: all servers are of that release, or of a later one, as in a rollback.
func (s *Stage) heldBack() string {
	if running := s.Registry.Status.Version; running == "" || semver.Compare(s.Release.Version, running) > 0 {
		return fmt.Sprintf("Waiting for all servers to run %s; the controller follows", s.Release.Version)
	}
	return ""
}

// wellKnown is done when all replicas are up to date and ready, and each function runs, with
// a note of what they hold.
func (s *Stage) wellKnown(ctx context.Context, on []string, deployment *appsv1.Deployment, pods []corev1.Pod, unbound []*unstructured.Unstructured) verdict.Verdict {
	replicas := s.replicas(ctx, deployment, pods)
	if v := s.renewTokens(ctx, deployment, pods); !v.Complete() {
		return v
	}
	lease, err := s.lease(ctx)
	if err != nil {
		return verdict.Failed(err)
	}
	if !replicas.Complete() {
		// Pods that can't come up for want of rights say so.
		return s.abandoned(lease, s.withoutRights(ctx, on, unbound, replicas))
	}
	return s.abandoned(lease, s.withoutRights(ctx, on, unbound, s.reported(lease, on)))
}

// replicas is done when as many replicas as desired are of the latest template and ready.
func (s *Stage) replicas(ctx context.Context, deployment *appsv1.Deployment, pods []corev1.Pod) verdict.Verdict {
	status, desired := deployment.Status, int32(1)
	if deployment.Spec.Replicas != nil {
		desired = *deployment.Spec.Replicas
	}
	if status.ObservedGeneration < deployment.Generation {
		status.UpdatedReplicas = 0 // they are of what was rendered before
	}
	if status.UpdatedReplicas < desired || status.Replicas > status.UpdatedReplicas {
		s.found.Rolling = fmt.Sprintf("controller: %d of %d updated", min(status.UpdatedReplicas, desired), desired)
	}
	staying := operand.Staying(pods)
	problems := s.Diagnoser().Pods(ctx, staying)
	if len(problems) == 0 && s.found.Rolling != "" {
		problems = []string{s.found.Rolling}
	}
	if len(pods) == 0 || len(problems) == 0 && int32(len(staying)) < desired {
		problems = []string{s.Diagnoser().Replicas(ctx, deployment)}
	}
	if len(problems) == 0 {
		return done
	}
	ready := int32(len(slices.DeleteFunc(slices.Clone(staying), func(pod corev1.Pod) bool { return !diagnose.Ready(&pod) })))
	reason := operand.MemoryReason(operatorv1alpha1.ReasonReplicasNotReady, staying, s.Now)
	return verdict.Waiting(reason, "%d of %d replicas ready: %s", min(ready, desired), desired, diagnose.Join(problems))
}

// rendered returns where the Deployment is among the objects of the stage, -1 when it is
// not among them.
func rendered(o *operand.Objects) int {
	return slices.IndexFunc(o.Rendered.Stages[render.StageController], func(u *unstructured.Unstructured) bool { return u.GetKind() == "Deployment" })
}

// account is the ServiceAccount of the controller, as the host cluster names it as a user.
func account(o *operand.Objects) string {
	return "system:serviceaccount:" + o.Registry.Namespace + ":" + o.Name(contract.ControllerSuffix)
}

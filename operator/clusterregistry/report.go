package clusterregistry

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

// report turns what came of the stages into conditions, events, metrics and one
// patch of the status, and says when to reconcile again.
func (r *Reconciler) report(ctx context.Context, s *scope) (reconcile.Result, error) {
	conditions := s.conditions()
	s.advanceHistory(conditions)
	after, firstError := s.next()
	if firstError == nil {
		s.registry.Status.ObservedGeneration = s.registry.Generation
	}
	if err := r.writeStatus(ctx, s, conditions); err != nil {
		return reconcile.Result{}, err
	}
	if firstError != nil {
		return reconcile.Result{}, firstError
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// parts are the conditions of the plan and of the stages, in their order.
func (s *scope) parts() []string {
	out := []string{operatorv1alpha1.ConditionVersionSupported}
	for _, stage := range stages(s.registry.Spec.Mode) {
		out = append(out, stage.condition)
	}
	return out
}

// next returns when to reconcile again at the latest, and the error of the first stage
// that has one.
func (s *scope) next() (after time.Duration, err error) {
	after = vigil
	for _, kind := range append(s.parts(), operatorv1alpha1.ConditionProgressing) {
		v := s.results[kind]
		if err == nil {
			err = v.Err
		}
		switch {
		case v.After > 0:
			after = min(after, v.After)
		case !v.Complete():
			after = min(after, backstop)
		}
	}
	if s.available.after > 0 {
		after = min(after, s.available.after)
	}
	return after, err
}

// writeStatus sets conditions, emits events of those that changed, and patches the
// status if it did.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope, conditions []metav1.Condition) error {
	status := &s.registry.Status
	var changed []metav1.Condition
	for _, condition := range conditions {
		condition.ObservedGeneration = s.registry.Generation
		condition.Message = verdict.Bounded(condition.Message)
		old := meta.FindStatusCondition(status.Conditions, condition.Type)
		if telling(old, condition) {
			changed = append(changed, condition)
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	measure(s)
	if apiequality.Semantic.DeepEqual(s.before, *status) {
		return nil
	}
	before, after := &operatorv1alpha1.ClusterRegistry{}, &operatorv1alpha1.ClusterRegistry{}
	before.Name, before.Namespace, before.Status = s.registry.Name, s.registry.Namespace, s.before
	after.Name, after.Namespace, after.Status = s.registry.Name, s.registry.Namespace, *status
	before.Spec, after.Spec = s.registry.Spec, s.registry.Spec
	if err := r.Client.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	for _, condition := range changed {
		r.tell(s, condition)
	}
	return nil
}

// telling reports whether a change of a condition is worth an event. The sums of
// the others tell less often than these do.
func telling(old *metav1.Condition, now metav1.Condition) bool {
	same := old != nil && old.Status == now.Status
	switch now.Type {
	case operatorv1alpha1.ConditionAvailable:
		return !same && now.Status != metav1.ConditionUnknown && now.Reason != operatorv1alpha1.ReasonDeleting
	case operatorv1alpha1.ConditionReady:
		return !same && (old != nil || now.Status == metav1.ConditionTrue)
	case operatorv1alpha1.ConditionProgressing:
		return old != nil && old.Reason != now.Reason
	}
	return now.Status != metav1.ConditionUnknown && (!same || old.Reason != now.Reason)
}

// tell emits the event of a condition that changed. In an upgrade parts are
// expected to be replaced, and only what blocks it is a warning.
func (r *Reconciler) tell(s *scope, condition metav1.Condition) {
	kind := corev1.EventTypeNormal
	if condition.Status == metav1.ConditionFalse && s.installed() && condition.Type != operatorv1alpha1.ConditionProgressing && s.registry.Status.Operation == nil ||
		condition.Type == operatorv1alpha1.ConditionAvailable && condition.Status == metav1.ConditionFalse || condition.Reason == operatorv1alpha1.ReasonOOMKilled || condition.Reason == operatorv1alpha1.ReasonUpgradeBlocked || condition.Reason == operatorv1alpha1.ReasonSnapshotFailed {
		kind = corev1.EventTypeWarning
	}
	r.event(s, kind, condition.Reason, condition.Type, "%s is %s: %s", condition.Type, condition.Status, condition.Message)
}

// event emits an event about the registry. Of events with the same reason and
// action at the same state, the recorder keeps only the first.
func (r *Reconciler) event(s *scope, kind, reason, action, format string, args ...any) {
	if s.terminating {
		return // the host lets nothing be created there, not even an event
	}
	note := fmt.Sprintf(format, args...)
	const most = 1000 // an event's note ends at 1 KiB
	if len(note) > most {
		note = note[:most] + "..."
	}
	r.Events.Eventf(s.registry, nil, kind, reason, action, "%s", note)
}

// conditions returns the conditions, those of the stages first.
func (s *scope) conditions() []metav1.Condition {
	var out []metav1.Condition
	waitsFor := ""
	for _, kind := range s.parts() {
		if !s.results[kind].Complete() {
			waitsFor = kind
			break
		}
	}
	for _, kind := range s.parts() {
		out = append(out, s.condition(kind, waitsFor))
	}
	return append(out, s.progressing(out), s.availableCondition(), s.ready(out))
}

func (s *scope) condition(kind, waitsFor string) metav1.Condition {
	result, reached := s.results[kind]
	switch {
	case !reached:
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: operatorv1alpha1.ReasonWaiting, Message: "Waiting for " + waitsFor}
	case !result.Complete():
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: result.Reason, Message: result.Message}
	}
	condition := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: operatorv1alpha1.ReasonReady, Message: s.well(kind)}
	if kind == operatorv1alpha1.ConditionVersionSupported {
		condition.Reason = operatorv1alpha1.ReasonSupported
	}
	if result.Reason != "" {
		condition.Reason = result.Reason
		condition.Message += "; " + result.Message
	}
	return condition
}

// well says what a condition that is true means for this registry.
func (s *scope) well(kind string) string {
	status := s.registry.Status
	switch kind {
	case operatorv1alpha1.ConditionVersionSupported:
		if s.registry.Status.Operation != nil {
			return fmt.Sprintf("Upgrade from %s to %s is supported on Kubernetes %s", s.upgrade.From.Version, s.upgrade.To.Version, s.host)
		}
		return fmt.Sprintf("%s is supported on Kubernetes %s", s.release.Version, s.host)
	case operatorv1alpha1.ConditionCertificatesReady:
		return fmt.Sprintf("%d certificates are issued", len(status.Certificates))
	case operatorv1alpha1.ConditionEtcdReady:
		return fmt.Sprintf("%s etcd members ready (%s)", status.Etcd.Ready, status.EtcdVersion)
	case operatorv1alpha1.ConditionServerReady:
		return fmt.Sprintf("%d servers ready (%s)", status.Server.ReadyReplicas, status.Version)
	case operatorv1alpha1.ConditionAPIServiceReady:
		return fmt.Sprintf("the host cluster serves %s (%s)", registryGroup, strings.Join(s.release.Serves, ", "))
	}
	return "clients reach the registry at " + status.Endpoint.URL
}

// progressing is true while something is being changed.
func (s *scope) progressing(parts []metav1.Condition) metav1.Condition {
	condition := metav1.Condition{Type: operatorv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: operatorv1alpha1.ReasonUpToDate, Message: "the registry is up to date"}
	waits, v := firstNotTrue(parts), s.results[operatorv1alpha1.ConditionProgressing]
	halted, until := s.halted()
	switch {
	case s.deleting() != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, operatorv1alpha1.ReasonDeleting, s.deleting()
	case s.upgrading():
		condition.Reason, condition.Message = v.Reason, fmt.Sprintf("%s -> %s: %s", s.upgrade.From.Version, s.upgrade.To.Version, v.Message)
		if v.Reason != operatorv1alpha1.ReasonUpgradeBlocked && v.Reason != halted {
			condition.Status = metav1.ConditionTrue
		}
	case !v.Complete():
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, v.Reason, v.Message
	case halted != "":
		condition.Reason, condition.Message = halted, "nothing is changed until "+until
	case s.rendered == nil:
		condition.Reason, condition.Message = waits.Reason, "nothing is changed: "+waits.Message
	case !s.installed() && waits != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, operatorv1alpha1.ReasonProgressing, fmt.Sprintf("the registry is being installed: %s: %s", waits.Type, waits.Message)
	case s.rolling != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, operatorv1alpha1.ReasonProgressing, s.rolling
	}
	return condition
}

// upgrading reports whether an upgrade is under way and waits for something.
func (s *scope) upgrading() bool {
	return s.registry.Status.Operation != nil && s.upgrade != nil && !s.results[operatorv1alpha1.ConditionProgressing].Complete()
}

// availableCondition says whether clients are served. In a registry that is taken down
// they are not for long.
func (s *scope) availableCondition() metav1.Condition {
	if deleting := s.deleting(); deleting != "" {
		return isAvailable(metav1.ConditionFalse, operatorv1alpha1.ReasonDeleting, deleting)
	}
	return s.available.condition
}

// ready sums the parts up.
func (s *scope) ready(parts []metav1.Condition) metav1.Condition {
	condition := metav1.Condition{Type: operatorv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: operatorv1alpha1.ReasonReady, Message: "the registry is ready"}
	waits, v := firstNotTrue(parts), s.results[operatorv1alpha1.ConditionProgressing]
	switch {
	case s.deleting() != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, operatorv1alpha1.ReasonDeleting, s.deleting()
	case waits != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, waits.Reason, waits.Type+": "+waits.Message
	case s.available.condition.Status == metav1.ConditionFalse:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, s.available.condition.Reason, operatorv1alpha1.ConditionAvailable+": "+s.available.condition.Message
	case s.upgrading():
		condition.Status, condition.Reason = metav1.ConditionFalse, v.Reason
		condition.Message = fmt.Sprintf("the registry is available, and is being upgraded from %s to %s: %s", s.upgrade.From.Version, s.upgrade.To.Version, v.Message)
	case !v.Complete():
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, v.Reason, operatorv1alpha1.ConditionProgressing+": "+v.Message
	case s.registry.Status.Endpoint != nil:
		condition.Message = "the registry is ready at " + s.registry.Status.Endpoint.URL
	}
	if condition.Status == metav1.ConditionTrue {
		for _, part := range parts {
			if result := s.results[part.Type]; result.Reason == operatorv1alpha1.ReasonOOMKilled {
				condition.Message += "; " + result.Message
			}
		}
	}
	return condition
}

// firstNotTrue returns the first part that is not up to date. What is wrong comes
// before what waits for it.
func firstNotTrue(parts []metav1.Condition) *metav1.Condition {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for i := range parts {
			if parts[i].Status == status {
				return &parts[i]
			}
		}
	}
	return nil
}

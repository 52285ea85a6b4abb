package clusterregistry

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/maintenance"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/defragmentation"
	"github.com/clusterregistry/operator/operator/verdict"
)

// defragmenting reports whether a defragmentation of etcd is under way.
func (s *scope) defragmenting() bool {
	o := s.Registry.Status.Operation
	return o != nil && o.Type == operatorv1alpha1.OperationDefragmentation
}

// defragment takes a defragmentation of the registry's own etcd one step further, or begins
// one where members have much free space and nothing else is going on.
func (r *Reconciler) defragment(ctx context.Context, s *scope) verdict.Verdict {
	if s.identity.Record == nil || s.Registry.Spec.Etcd.External != nil {
		return done
	}
	status := &s.Registry.Status
	window := maintenance.New(s.Registry.Spec.Etcd.MaintenanceWindow)
	if err := window.Err(); err != nil {
		s.noteEtcd(operatorv1alpha1.ReasonMaintenanceWindowInvalid, err.Error()+"; until then no etcd member is defragmented")
	}
	handler := defragmentation.Handler{Operation: status.Operation, Members: status.Etcd.Members, Now: s.Now, State: s.members.State, Recorded: s.identity.Record.Identity, Busy: s.replacingMembers(), Window: window,
		Defragment: s.members.Access.Defragment, Event: func(message string) {
			s.Event(corev1.EventTypeNormal, "MemberDefragmented", operatorv1alpha1.ConditionEtcdReady, "%s", message)
		}}
	if status.Operation == nil {
		if !s.ReadOnly() && s.steady() && handler.Due() {
			status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationDefragmentation}
			handler.Operation = status.Operation
			operation.Enter(status.Operation, operatorv1alpha1.PhasePreflight, s.Now)
			return handler.Waiting("starts").In(verdict.AtOnce)
		}
		return s.held(handler)
	}
	reason, until := s.halted()
	driver := operation.Driver{Status: status.Operation, Recorded: s.Before.Operation, Now: s.Now, ReadOnly: s.frozenBy(), HeldReason: reason, HeldUntil: until, HeldRetry: verdict.Resync}
	v, progress := driver.Advance(ctx, handler)
	if progress != operation.UnderWay {
		status.Operation = nil
		return done.In(verdict.AtOnce)
	}
	return v
}

// held notes what waits for the maintenance window, and returns when that opens.
func (s *scope) held(handler defragmentation.Handler) verdict.Verdict {
	message, opens := handler.Held()
	if message == "" || handler.Window.Err() != nil {
		return done
	}
	s.noteEtcd(operatorv1alpha1.ReasonDefragmentationPending, message)
	if opens.IsZero() {
		return done
	}
	return done.In(opens.Sub(s.Now))
}

// noteEtcd adds what a person should know to an etcd that is ready.
func (s *scope) noteEtcd(reason, message string) {
	if v, reached := s.verdicts[operatorv1alpha1.ConditionEtcdReady]; reached && v.Complete() {
		s.verdicts[operatorv1alpha1.ConditionEtcdReady] = v.Note(cmp.Or(v.Reason, reason), message)
	}
}

// replacingMembers says that etcd members are being replaced, or are about to be.
func (s *scope) replacingMembers() string {
	if s.members.Rolling == "" && s.members.Replacing {
		return "etcd members are being replaced"
	}
	return s.members.Rolling
}

// steady reports whether the registry was complete once, all its parts are ready and nothing
// that serves clients is being replaced. Which release it should run does not matter.
func (s *scope) steady() bool {
	for _, kind := range parts(s.Registry.Spec.Mode) {
		if v, reached := s.verdicts[kind]; kind != planned && (!reached || !v.Complete()) {
			return false
		}
	}
	return s.Installed() && s.servers.Rolling == "" && s.replacingMembers() == ""
}

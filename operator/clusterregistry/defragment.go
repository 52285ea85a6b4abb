package clusterregistry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/maintenance"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/defragmentation"
	"github.com/clusterregistry/operator/operator/operation/membership"
	"github.com/clusterregistry/operator/operator/verdict"
)

// isDefragmented reports whether a defragmentation of etcd is under way.
func (s *scope) isDefragmented() bool {
	o := s.Registry.Status.Operation
	return o != nil && o.Type == operatorv1alpha1.OperationDefragmentation
}

// wasFull reports whether etcd was full in the reconcile before, as far as was said.
func (s *scope) wasFull() bool {
	c := meta.FindStatusCondition(s.Before.Conditions, operatorv1alpha1.ConditionEtcdReady)
	return c != nil && c.Reason == operatorv1alpha1.ReasonNoSpace
}

// ownEtcd reports whether etcd is the operator's to defragment.
func (s *scope) ownEtcd() bool {
	return s.Identity.Record != nil && s.Registry.Spec.Etcd.External == nil
}

// defragmentation returns the defragmentation of the registry's own etcd that is under way,
// or could begin.
func (r *Reconciler) defragmentation(s *scope) defragmentation.Handler {
	status, name := &s.Registry.Status, client.ObjectKeyFromObject(s.Registry).String()
	r.revisions.Note(name, etcd.Seen{Revision: s.Members.State.Revision(), Time: s.Now})
	return defragmentation.Handler{
		Operation: status.Operation, Etcd: &status.Etcd, Now: s.Now,
		State: s.Members.State, Recorded: s.Identity.Record.Identity, Old: r.revisions.Old(name, s.Now),
		Busy: s.ReplacingMembers(), Window: maintenance.New(s.Registry.Spec.Etcd.MaintenanceWindow),
		Defragment: s.Members.Access.Defragment, Compact: s.Members.Access.Compact,
		Event: func(kind, reason, message string) {
			s.Event(kind, reason, operatorv1alpha1.ConditionEtcdReady, "%s", message)
		},
	}
}

// defragmenting is the defragmentation of the registry's own etcd: it begins where members have
// much free space and nothing else is going on, or where etcd is full.
func (r *Reconciler) defragmenting(s *scope) operation.Operation {
	return operation.Operation{
		Types: []operatorv1alpha1.OperationType{operatorv1alpha1.OperationDefragmentation},
		Begin: func(context.Context) (*operatorv1alpha1.Operation, verdict.Verdict) {
			handler := r.askedDefragmentation(s)
			if !s.mayDefragment(handler) || !handler.Due() {
				return nil, s.held(handler)
			}
			handler.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationDefragmentation}
			operation.Enter(handler.Operation, operatorv1alpha1.PhasePreflight, s.Now)
			return handler.Operation, handler.Waiting("starts").In(verdict.AtOnce)
		},
		Handler: func(context.Context) (operation.Handler, verdict.Verdict) { return r.askedDefragmentation(s), done },
		Ended:   func(operation.Progress) {},
	}
}

// askedDefragmentation is the defragmentation with what a person asks for of it. What can't be
// followed of that is noted.
func (r *Reconciler) askedDefragmentation(s *scope) defragmentation.Handler {
	handler := r.defragmentation(s)
	handler.Relax()
	var err error
	if handler.Request, err = s.requested(handler); err != nil {
		s.note(operatorv1alpha1.ConditionEtcdReady, operatorv1alpha1.ReasonDefragmentationRequestInvalid, "the annotation "+operatorv1alpha1.AnnotationDefragment+" is not followed: "+err.Error())
	}
	if err := handler.Window.Err(); err != nil {
		s.note(operatorv1alpha1.ConditionEtcdReady, operatorv1alpha1.ReasonMaintenanceWindowInvalid, err.Error()+"; until then no etcd member is defragmented")
	}
	return handler
}

// mayDefragment reports whether a defragmentation may begin: once all parts of the registry
// are ready, or at once where etcd is full.
func (s *scope) mayDefragment(handler defragmentation.Handler) bool {
	return !s.ReadOnly() && (s.Unsteady() == "" || handler.Full() && handler.Busy == "")
}

// giveWay gives up an operation where etcd is full and something can be done about it, for
// which the operation would wait. It begins again after that.
func (r *Reconciler) giveWay(s *scope) {
	other := s.Registry.Status.Operation
	if other == nil || s.isDefragmented() || !s.ownEtcd() || !s.Members.State.NoSpace() {
		return
	}
	if !s.givesWay(other) {
		v := s.verdicts[operatorv1alpha1.ConditionEtcdReady]
		v.Message += fmt.Sprintf("; neither is done before the operation %s that is under way is complete: raise spec.etcd.storage.size", other.Type)
		s.verdicts[operatorv1alpha1.ConditionEtcdReady] = v
		return
	}
	if handler := r.defragmentation(s); s.mayDefragment(handler) && handler.Due() {
		operation.End(s.Registry)
		s.upgrade = nil
	}
}

// givesWay reports whether an operation can be given up now, and begin again later: one that
// has touched nothing yet, a change of members while none joins or leaves, a rotation, and a change of keys,
// since it is recorded elsewhere how far those are.
func (s *scope) givesWay(other *operatorv1alpha1.Operation) bool {
	return other.Phase == operatorv1alpha1.PhasePreflight || other.Type == operatorv1alpha1.OperationRotation || other.Type == operatorv1alpha1.OperationEncryption ||
		membership.Is(other) && !s.Identity.Record.Changing()
}

// requested returns the defragmentation that a person has asked for, if one is.
func (s *scope) requested(handler defragmentation.Handler) (contract.DefragmentRequest, error) {
	request, err := contract.ParseDefragmentRequest(s.Registry.Annotations[operatorv1alpha1.AnnotationDefragment])
	if err != nil {
		return contract.DefragmentRequest{}, err
	}
	handler.Request = request
	if problem := handler.RequestProblem(); problem != "" {
		return contract.DefragmentRequest{}, errors.New(problem)
	}
	return request, nil
}

// held notes what waits for the maintenance window or, as a person has asked for it, for
// something else, and returns when to reconcile again for that.
func (s *scope) held(handler defragmentation.Handler) verdict.Verdict {
	v := done
	note := func(message string, at time.Time) {
		if message == "" {
			return
		}
		s.note(operatorv1alpha1.ConditionEtcdReady, operatorv1alpha1.ReasonDefragmentationPending, message)
		if after := at.Sub(s.Now); !at.IsZero() && (v.After == 0 || after < v.After) {
			v = v.In(after)
		}
	}
	note(handler.HeldRequest())
	if handler.Window.Err() == nil {
		note(handler.Held())
	}
	return v
}

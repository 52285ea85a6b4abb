package defragmentation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/maintenance"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Drive is what one reconcile does about the free pages of a registry's own etcd: it begins a
// defragmentation, hands it to the loop of operations, and says what one waits for.
type Drive struct {
	pass.Pass
	// Revisions are those at which each etcd was seen.
	Revisions *etcd.Revisions

	notes []pass.Note
}

// Notes are what a person should know of what was found while the operation was driven.
func (d *Drive) Notes() []pass.Note { return d.notes }

// note adds what a person should know of etcd.
func (d *Drive) note(reason, message string) {
	d.notes = append(d.notes, pass.Note{Condition: operatorv1alpha1.ConditionEtcdReady, Reason: reason, Message: message})
}

// underWay reports whether a defragmentation of etcd is under way.
func (d *Drive) underWay() bool {
	o := d.Registry.Status.Operation
	return o != nil && o.Type == operatorv1alpha1.OperationDefragmentation
}

// Ours reports whether etcd is the operator's to defragment.
func (d *Drive) Ours() bool {
	return d.Identity.Record != nil && d.Registry.Spec.Etcd.External == nil
}

// handler returns the defragmentation of the registry's own etcd that is under way, or could
// begin.
func (d *Drive) handler() Handler {
	status, name := &d.Registry.Status, client.ObjectKeyFromObject(d.Registry).String()
	d.Revisions.Note(name, etcd.Seen{Revision: d.Members.State.Revision(), Time: d.Now})
	return Handler{
		Operation: status.Operation, Etcd: &status.Etcd, Now: d.Now,
		State: d.Members.State, Recorded: d.Identity.Record.Identity, Old: d.Revisions.Old(name, d.Now),
		Busy: d.ReplacingMembers(), Window: maintenance.New(d.Registry.Spec.Etcd.MaintenanceWindow),
		Defragment: d.Members.Access.Defragment, Compact: d.Members.Access.Compact,
		Event: func(kind, reason, message string) {
			d.Event(kind, reason, operatorv1alpha1.ConditionEtcdReady, "%s", message)
		},
	}
}

// Operation is the defragmentation of the registry's own etcd: it begins where members have
// much free space and nothing else is going on, or where etcd is full. It is asked for where etcd
// is Ours.
func (d *Drive) Operation() operation.Operation {
	return operation.Operation{
		Types: []operatorv1alpha1.OperationType{operatorv1alpha1.OperationDefragmentation},
		Begin: func(context.Context) (*operatorv1alpha1.Operation, verdict.Verdict) {
			handler := d.asked()
			if !d.may(handler) || !handler.Due() {
				return nil, d.held(handler)
			}
			handler.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationDefragmentation}
			operation.Enter(handler.Operation, operatorv1alpha1.PhasePreflight, d.Now)
			return handler.Operation, handler.Waiting("starts").In(verdict.AtOnce)
		},
		Handler: func(context.Context) (operation.Handler, verdict.Verdict) { return d.asked(), verdict.Verdict{} },
		Ended:   func(operation.Progress) {},
	}
}

// asked is the defragmentation with what a person asks for of it. What can't be followed of
// that is noted.
func (d *Drive) asked() Handler {
	handler := d.handler()
	handler.Relax()
	var err error
	if handler.Request, err = d.requestOf(handler); err != nil {
		d.note(operatorv1alpha1.ReasonDefragmentationRequestInvalid, "the annotation "+operatorv1alpha1.AnnotationDefragment+" is not followed: "+err.Error())
	}
	if err := handler.Window.Err(); err != nil {
		d.note(operatorv1alpha1.ReasonMaintenanceWindowInvalid, err.Error()+"; until then no etcd member is defragmented")
	}
	return handler
}

// may reports whether a defragmentation may begin: once all parts of the registry are ready, or
// at once where etcd is full.
func (d *Drive) may(handler Handler) bool {
	return !d.ReadOnly() && (d.Unsteady() == "" || handler.Full() && handler.Busy == "")
}

// GiveWay ends an operation where etcd is full and something can be done about it, for which
// the operation would wait. It begins again after that. Where it can't be ended, besides says
// what to do instead.
func (d *Drive) GiveWay() (ended bool, besides string) {
	other := d.Registry.Status.Operation
	if other == nil || d.underWay() || !d.Ours() || !d.Members.State.NoSpace() {
		return false, ""
	}
	if !d.givesWay(other) {
		return false, fmt.Sprintf("; neither is done before the operation %s that is under way is complete: raise spec.etcd.storage.size", other.Type)
	}
	if handler := d.handler(); !d.may(handler) || !handler.Due() {
		return false, ""
	}
	operation.End(d.Registry)
	return true, ""
}

// givesWay reports whether an operation can be given up now, and begin again later: one that
// has touched nothing yet, a change of members while none joins or leaves, a rotation, and a
// change of keys, since it is recorded elsewhere how far those are.
func (d *Drive) givesWay(other *operatorv1alpha1.Operation) bool {
	return other.Phase == operatorv1alpha1.PhasePreflight || other.Type == operatorv1alpha1.OperationRotation || other.Type == operatorv1alpha1.OperationEncryption ||
		operation.ChangesMembers(other) && !d.Identity.Record.Changing()
}

// requestOf returns the defragmentation that a person has asked for, if one is.
func (d *Drive) requestOf(handler Handler) (contract.DefragmentRequest, error) {
	request, err := contract.ParseDefragmentRequest(d.Registry.Annotations[operatorv1alpha1.AnnotationDefragment])
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
func (d *Drive) held(handler Handler) verdict.Verdict {
	v := verdict.Verdict{}
	note := func(message string, at time.Time) {
		if message == "" {
			return
		}
		d.note(operatorv1alpha1.ReasonDefragmentationPending, message)
		if after := at.Sub(d.Now); !at.IsZero() && (v.After == 0 || after < v.After) {
			v = v.In(after)
		}
	}
	note(handler.HeldRequest())
	if handler.Window.Err() == nil {
		note(handler.Held())
	}
	return v
}

package clusterregistry

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/operation/rotation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// The CAs that can be rotated, by the names of the fields in spec.tls.rotation.
const (
	caEtcd    = "etcd"
	caServing = "serving"
	caClient  = "client"
)

// rotations returns the CAs of the registry's own that can be rotated, in the order in which
// they are.
func (r *Reconciler) rotations(s *scope) []rotation.Handler {
	asked, independent := s.Registry.Spec.TLS.Rotation, s.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent
	var out []rotation.Handler
	if s.Identity.Record != nil {
		ca := newEtcdCA(r, s)
		h := handlerOf(caEtcd, ca, s.Authorities.Etcd, automatic(asked.Etcd))
		h.Servers = ca.Servers
		out = append(out, h)
	}
	if s.Registry.Spec.TLS.IssuerRef == nil {
		desired := automatic(asked.Serving)
		if independent {
			desired.Replaceable, desired.Dropped = asked.Drop.Serving, asked.Drop.Serving
		}
		out = append(out, handlerOf(caServing, newServingCA(r, s), s.Authorities.Serving, desired))
	}
	if independent {
		desired := automatic(asked.Client)
		desired.Dropped = asked.Drop.Client
		if former := s.Authorities.Clients.Former(); len(former) > 0 && slices.Max(former) > asked.Drop.Client {
			desired.Dropped = 0 // all go at once, so that the newest is to be named
		}
		out = append(out, handlerOf(caClient, newClientCA(r, s), s.Authorities.Clients, desired))
	}
	for i := range out {
		out[i].Operation, out[i].Now, out[i].Busy = s.Registry.Status.Operation, s.Now, s.Unsteady()
	}
	return out
}

// handlerOf returns the rotation of a CA.
func handlerOf(name string, ca rotation.CA, a trust.Authority, desired generation.Desired) rotation.Handler {
	return rotation.Handler{Name: name, CA: ca, InUse: a.InUse, Desired: desired, Unissued: a.Unissued(), Lost: a.Lost}
}

// automatic is desired of a CA of which no one but the operator has handed out anything: the
// newest generation signs, and no other one is trusted, as soon as that can be.
func automatic(asked int32) generation.Desired {
	newest := max(asked, generation.First)
	return generation.Desired{Generation: newest, Replaceable: newest - 1, Dropped: newest - 1}
}

// rotated returns the name of the CA that is being rotated, nothing when none is.
func (s *scope) rotated() string {
	o := s.Registry.Status.Operation
	if o == nil || o.Type != operatorv1alpha1.OperationRotation {
		return ""
	}
	name, _, _ := strings.Cut(o.To, " ")
	return name
}

// rotation is the rotation of a CA: of the one that is being rotated, or the first one that is
// due.
func (r *Reconciler) rotation(s *scope) operation.Operation {
	all := r.rotations(s)
	i := slices.IndexFunc(all, func(h rotation.Handler) bool { return h.Name == s.rotated() })
	return operation.Operation{
		Types:  []operatorv1alpha1.OperationType{operatorv1alpha1.OperationRotation},
		Writes: true,
		Begin: func(context.Context) (*operatorv1alpha1.Operation, verdict.Verdict) {
			due := slices.IndexFunc(all, rotation.Handler.Due)
			if due < 0 || s.ReadOnly() || s.Unsteady() != "" {
				return nil, done
			}
			handler := all[due]
			handler.Operation = handler.Begin()
			return handler.Operation, handler.Waiting("starts").In(verdict.AtOnce)
		},
		Handler: func(ctx context.Context) (operation.Handler, verdict.Verdict) {
			switch {
			case i < 0: // it can't be rotated any more, as with an issuer in its place
				return nil, done
			case all[i].Outdated(): // rotationNoted says what to do
				return nil, done
			case s.verdicts[pass.Planned].Reason == operatorv1alpha1.ReasonOperationInProgress && all[i].GivesWay() && !s.ReadOnly():
				return nil, s.putOff(ctx, all[i])
			}
			return all[i], done
		},
		Ended: func(operation.Progress) {
			s.Event(corev1.EventTypeNormal, "CARotated", operatorv1alpha1.ConditionCertificatesReady, "%s", s.rotationEnded(all[i]))
		},
	}
}

// putOff has an upgrade come before a rotation of which nothing is published yet: it may wait
// for cert-manager for long, and begins again after that.
func (s *scope) putOff(ctx context.Context, h rotation.Handler) verdict.Verdict {
	if err := h.PutOff(ctx); err != nil {
		return verdict.Failed(fmt.Errorf("put the rotation of the %s CA off: %w", h.Name, err))
	}
	s.Event(corev1.EventTypeNormal, "CARotationPutOff", operatorv1alpha1.ConditionCertificatesReady, "the %s CA is rotated after the upgrade to %s: nothing has been published of the new CA", h.Name, s.Registry.Spec.Version)
	return done
}

// rotationEnded says what came of a rotation.
func (s *scope) rotationEnded(h rotation.Handler) string {
	return fmt.Sprintf("the rotation of the %s CA is complete for now: generation %s", h.Name, h.InUse.Words())
}

// withdraw has a CA be rendered, and published, without its previous generation while the
// operation is in the phase for that. The record still has it: what is withdrawn is known,
// and an operation that gets lost has both trusted again.
func (s *scope) withdraw() {
	if s.rotated() == "" {
		return
	}
	a, phase := s.Authorities, s.Registry.Status.Operation.Phase
	withdrawal := phase == operatorv1alpha1.PhaseWithdrawal
	switch ca := s.rotated(); {
	case ca == caEtcd && phase == operatorv1alpha1.PhaseServer:
		a.ClientsOfEtcdFirst = true
	case ca == caEtcd && withdrawal:
		a.Etcd.Withdraw()
	case ca == caServing && withdrawal:
		a.Serving.Withdraw() // what was published follows when no server shows it: certificates.Retire
	case ca == caClient && withdrawal:
		if a.Clients.Withdraw(); a.Clients.Withdrawn {
			a.Clients.Forget(a.Clients.InUse.Signing)
		}
	}
}

// abandon leaves next generations out of what is rendered that no rotation is making and of
// which there is no certificate, as after the status got lost or the rotation gave way: a
// Certificate that is not issued would hold everything up, that of a later rotation too.
func (s *scope) abandon() {
	for name, ca := range map[string]*trust.Authority{caEtcd: &s.Authorities.Etcd, caServing: &s.Authorities.Serving, caClient: &s.Authorities.Clients} {
		if name != s.rotated() {
			ca.Abandon()
		}
	}
}

// takeBack records what abandon has left out. The rotation begins again when it can.
func (r *Reconciler) takeBack(ctx context.Context, s *scope) error {
	if known := s.Authorities.Err == nil; !known || s.ReadOnly() {
		return nil
	}
	for _, c := range []ownCA{newEtcdCA(r, s).ownCA, newServingCA(r, s).ownCA, newClientCA(r, s).ownCA} {
		if c.ca.Abandoned == (generation.InUse{}) {
			continue
		}
		if err := s.retire(ctx, c.suffix, c.ca.Abandoned, c.ca.InUse); err != nil {
			return err
		}
		if err := c.write(ctx, c.ca.InUse); err != nil {
			return fmt.Errorf("record that generation %d of a CA, which was not issued, is not in use: %w", c.ca.Abandoned.Also, err)
		}
	}
	return nil
}

// noteRotations says which CAs wait for a person, or for something else.
func (s *scope) noteRotations(all []rotation.Handler) {
	for _, h := range all {
		if h.Name == s.rotated() {
			continue
		}
		if reason, message := s.rotationNoted(h); reason != "" {
			s.note(pass.Note{Condition: operatorv1alpha1.ConditionCertificatesReady, Reason: reason, Message: message})
		}
	}
}

// rotationNoted says what a CA that is not being rotated waits for.
func (s *scope) rotationNoted(h rotation.Handler) (reason, message string) {
	field := "spec.tls.rotation." + h.Name
	switch u := h.InUse; {
	case h.Desired.Generation < u.Signing:
		return operatorv1alpha1.ReasonRotationPending, fmt.Sprintf("%s is %d, and generation %d of that CA signs: no key is used again; set it to %d", field, h.Desired.Generation, u.Signing, max(u.Signing, u.Also))
	case h.Lost && h.Desired.Generation <= u.Also:
		return operatorv1alpha1.ReasonRotationPending, s.lostNext(h)
	case h.Due():
		return operatorv1alpha1.ReasonRotationPending, fmt.Sprintf("the %s CA is rotated to generation %d when %s", h.Name, h.Desired.Generation, operation.Awaits(s.Pass))
	case u.Next():
		return operatorv1alpha1.ReasonDropPending, fmt.Sprintf("generations %d and %d of the %s CA are published, and the servers show a certificate of the first: give clients the kubeconfig in Secret %s, or status.endpoint.caBundle, again, and then set spec.tls.rotation.drop.%s to %d", u.Signing, u.Also, h.Name, s.Name(contract.KubeconfigSuffix), h.Name, u.Signing) + follows(h)
	case u.Previous():
		return operatorv1alpha1.ReasonDropPending, s.dropPending(h) + follows(h)
	}
	return "", ""
}

// dropPending says that certificates of earlier generations are accepted until a person drops
// them.
func (s *scope) dropPending(h rotation.Handler) string {
	former := s.Authorities.Clients.Former()
	which := fmt.Sprintf("generation %d", h.InUse.Also)
	newest := h.InUse.Also
	if len(former) > 1 {
		newest = slices.Max(former)
		which = "generations " + listed(former)
	}
	return fmt.Sprintf("certificates of %s of the %s CA are still accepted: issue users' certificates again, by Issuer %s, and then set spec.tls.rotation.drop.%s to %d",
		which, h.Name, s.Name(contract.Generation(contract.ClientCASuffix, h.InUse.Signing)), h.Name, newest)
}

// listed returns numbers as a sentence has them: 1, 2 and 3.
func listed(numbers []int32) string {
	out := ""
	for i, n := range numbers {
		switch {
		case i == 0:
		case i == len(numbers)-1:
			out += " and "
		default:
			out += ", "
		}
		out += strconv.Itoa(int(n))
	}
	return out
}

// lostNext says that the CA is gone, or has another key, which is to sign next and was given
// to people.
func (s *scope) lostNext(h rotation.Handler) string {
	suffix, again := contract.ClientCASuffix, ""
	if h.Name == caServing {
		suffix, again = contract.ServingCASuffix, fmt.Sprintf(", remove spec.tls.rotation.drop.serving, and give clients the kubeconfig in Secret %s, or status.endpoint.caBundle, again when the rotation has stopped (DropPending)", s.Name(contract.KubeconfigSuffix))
	}
	return fmt.Sprintf("the key of generation %d of the %s CA, which was published and is to sign next, is lost: Secret %s was deleted or replaced, and no other key takes its place; generation %d keeps signing. Restore that Secret from a backup; or set spec.tls.rotation.%s to %d, by which another CA is made%s",
		h.InUse.Also, h.Name, s.Name(contract.Generation(suffix, h.InUse.Also)), h.InUse.Signing, h.Name, h.InUse.Also+1, again)
}

// follows says that another rotation waits for a generation to be dropped.
func follows(h rotation.Handler) string {
	if newest := max(h.InUse.Signing, h.InUse.Also); h.Desired.Generation > newest {
		return fmt.Sprintf("; generation %d is made after that", h.Desired.Generation)
	}
	return ""
}

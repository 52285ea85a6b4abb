package rotation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// The CAs that can be rotated, by the names of the fields in spec.tls.rotation.
const (
	caEtcd    = "etcd"
	caServing = "serving"
	caClient  = "client"
)

// Drive is what one reconcile does about the CAs of a registry's own: it begins a rotation, hands
// it to the loop of operations, and says what one waits for.
type Drive struct {
	pass.Pass
	// Access is the way to the API servers, which are asked what they show and accept.
	Access servers.Access
}

// all returns the CAs of the registry's own that can be rotated, in the order in which they are.
func (d Drive) all() []Handler {
	asked, independent := d.Registry.Spec.TLS.Rotation, d.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent
	var out []Handler
	if d.Identity.Record != nil {
		ca := d.etcdCA()
		h := handlerOf(caEtcd, ca, d.Authorities.Etcd, automatic(asked.Etcd))
		h.Servers = ca.Servers
		out = append(out, h)
	}
	if d.Registry.Spec.TLS.IssuerRef == nil {
		desired := automatic(asked.Serving)
		if trust.Copied(d.Registry) {
			desired.Replaceable = asked.Drop.Serving
		}
		if independent {
			desired.Dropped = asked.Drop.Serving
		}
		out = append(out, handlerOf(caServing, d.servingCA(), d.Authorities.Serving, desired))
	}
	if independent {
		desired := automatic(asked.Client)
		desired.Dropped = asked.Drop.Client
		if former := d.Authorities.Clients.Former(); len(former) > 0 && slices.Max(former) > asked.Drop.Client {
			desired.Dropped = 0 // all go at once, so that the newest is to be named
		}
		out = append(out, handlerOf(caClient, d.clientCA(), d.Authorities.Clients, desired))
	}
	for i := range out {
		out[i].Operation, out[i].Now, out[i].Busy = d.Registry.Status.Operation, d.Now, d.Unsteady()
	}
	return out
}

// handlerOf returns the rotation of a CA.
func handlerOf(name string, ca CA, a trust.Authority, desired generation.Desired) Handler {
	return Handler{Name: name, CA: ca, InUse: a.InUse, Desired: desired, Unissued: a.Unissued(), Lost: a.Lost}
}

// automatic is desired of a CA of which no one but the operator has handed out anything: the
// newest generation signs, and no other one is trusted, as soon as that can be.
func automatic(asked int32) generation.Desired {
	newest := max(asked, generation.First)
	return generation.Desired{Generation: newest, Replaceable: newest - 1, Dropped: newest - 1}
}

// rotated returns the name of the CA that is being rotated, nothing when none is.
func (d Drive) rotated() string {
	o := d.Registry.Status.Operation
	if o == nil || o.Type != operatorv1alpha1.OperationRotation {
		return ""
	}
	name, _, _ := strings.Cut(o.To, " ")
	return name
}

// Operation is the rotation of a CA: of the one that is being rotated, or the first one that is
// due.
func (d Drive) Operation() operation.Operation {
	all := d.all()
	i := slices.IndexFunc(all, func(h Handler) bool { return h.Name == d.rotated() })
	return operation.Operation{
		Types:  []operatorv1alpha1.OperationType{operatorv1alpha1.OperationRotation},
		Writes: true,
		Begin: func(context.Context) (*operatorv1alpha1.Operation, verdict.Verdict) {
			due := slices.IndexFunc(all, Handler.Due)
			if due < 0 || d.ReadOnly() || d.Unsteady() != "" {
				return nil, verdict.Verdict{}
			}
			handler := all[due]
			handler.Operation = handler.Begin()
			return handler.Operation, handler.Waiting("starts").In(verdict.AtOnce)
		},
		Handler: func(ctx context.Context) (operation.Handler, verdict.Verdict) {
			planned, _ := d.Verdict(pass.Planned)
			switch {
			case i < 0: // it can't be rotated any more, as with an issuer in its place
				return nil, verdict.Verdict{}
			case all[i].Outdated(): // noted says what to do
				return nil, verdict.Verdict{}
			case planned.Reason == operatorv1alpha1.ReasonOperationInProgress && all[i].GivesWay() && !d.ReadOnly():
				return nil, d.putOff(ctx, all[i])
			}
			return all[i], verdict.Verdict{}
		},
		Ended: func(operation.Progress) {
			d.Event(corev1.EventTypeNormal, "CARotated", operatorv1alpha1.ConditionCertificatesReady, "%s", ended(all[i]))
		},
	}
}

// putOff has an upgrade come before a rotation of which nothing is published yet: it may wait
// for cert-manager for long, and begins again after that.
func (d Drive) putOff(ctx context.Context, h Handler) verdict.Verdict {
	if err := h.PutOff(ctx); err != nil {
		return verdict.Failed(fmt.Errorf("put the rotation of the %s CA off: %w", h.Name, err))
	}
	d.Event(corev1.EventTypeNormal, "CARotationPutOff", operatorv1alpha1.ConditionCertificatesReady, "the %s CA is rotated after the upgrade to %s: nothing has been published of the new CA", h.Name, d.Registry.Spec.Version)
	return verdict.Verdict{}
}

// ended says what came of a rotation.
func ended(h Handler) string {
	return fmt.Sprintf("the rotation of the %s CA is complete for now: generation %s", h.Name, h.InUse.Words())
}

// Read returns the CAs of the registry without what is being withdrawn of them, and what was
// given up.
func Read(ctx context.Context, p pass.Pass) (*trust.Authorities, error) {
	asked, inUse, copied := p.Registry.Spec.TLS.Rotation.Etcd, generation.InUse{}, trust.Copy{}
	var err error
	if p.Identity.Record != nil {
		inUse, copied = p.Identity.Record.Generations, trust.Copy{Serving: p.Identity.Record.ServingCA, Clients: p.Identity.Record.ClientCA}
	} else if inUse, err = trust.FirstInUse(ctx, p.Objects, contract.EtcdCASuffix, contract.EtcdServerSuffix, asked); err != nil {
		return nil, err
	}
	inUse.Signing = max(inUse.Signing, generation.First)
	if p.Authorities, err = trust.Read(ctx, p.Objects, inUse, copied); err != nil {
		return nil, err
	}
	if asked > generation.First && p.Identity.Err != nil {
		p.Authorities.Err = p.Identity.Err // which generation signs is in there
	}
	d := Drive{Pass: p}
	d.withdraw()
	d.abandon()
	return p.Authorities, nil
}

// withdraw has a CA be rendered, and published, without its previous generation while the
// operation is in the phase for that. The record still has it: what is withdrawn is known,
// and an operation that gets lost has both trusted again.
func (d Drive) withdraw() {
	if d.rotated() == "" {
		return
	}
	a, phase := d.Authorities, d.Registry.Status.Operation.Phase
	withdrawal := phase == operatorv1alpha1.PhaseWithdrawal
	switch ca := d.rotated(); {
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
func (d Drive) abandon() {
	for name, ca := range map[string]*trust.Authority{caEtcd: &d.Authorities.Etcd, caServing: &d.Authorities.Serving, caClient: &d.Authorities.Clients} {
		if name != d.rotated() {
			ca.Abandon()
		}
	}
}

// TakeBack records what Read has left out since it was never issued. The rotation begins again
// when it can.
func (d Drive) TakeBack(ctx context.Context) error {
	if known := d.Authorities.Err == nil; !known || d.ReadOnly() {
		return nil
	}
	for _, c := range []ownCA{d.etcdCA().ownCA, d.servingCA().ownCA, d.clientCA().ownCA} {
		if c.ca.Abandoned == (generation.InUse{}) {
			continue
		}
		if err := d.retire(ctx, c.suffix, c.ca.Abandoned, c.ca.InUse); err != nil {
			return err
		}
		if err := c.write(ctx, c.ca.InUse); err != nil {
			return fmt.Errorf("record that generation %d of a CA, which was not issued, is not in use: %w", c.ca.Abandoned.Also, err)
		}
	}
	return nil
}

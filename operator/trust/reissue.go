package trust

import (
	"context"
	"fmt"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/verdict"
)

// A Leaf is a certificate, in the Secret with that suffix, that must be signed by a CA of
// a bundle.
type Leaf struct {
	Suffix  string
	Trusted []byte
	// Source is where that CA is, for a person.
	Source string
	// Shown says that it is one of those that a server shows, which another issuer may sign.
	Shown bool
}

// EtcdLeaves are the certificates of etcd, which only trusts its CA: one in the two
// generations that are in use while it is rotated.
func (a *Authorities) EtcdLeaves() []Leaf {
	var out []Leaf
	for _, suffix := range []string{contract.EtcdServerSuffix, contract.EtcdPeerSuffix, contract.EtcdClientSuffix} {
		out = append(out, Leaf{Suffix: suffix, Trusted: a.Etcd.Trusted(), Source: a.Etcd.Source})
	}
	return out
}

// ServingLeaves are the certificates of the servers and of the administrator. The host
// cluster follows a CA that was replaced at once. Other clients keep copies of the
// previous one, so their servers' certificate stays until it is renewed anyway.
func (a *Authorities) ServingLeaves(mode operatorv1alpha1.Mode) []Leaf {
	if mode == operatorv1alpha1.ModeIndependent {
		return []Leaf{{contract.ServingSuffix, a.Serving.Bundle(), a.Serving.Source, true}, a.ClientLeaf(contract.AdminSuffix)}
	}
	return []Leaf{a.ServingLeaf(contract.ServingSuffix)}
}

// ServingLeaf is a certificate that the registry's own show, in an aggregated one.
func (a *Authorities) ServingLeaf(suffix string) Leaf {
	return Leaf{Suffix: suffix, Trusted: a.Serving.Trusted(), Source: a.Serving.Source, Shown: true}
}

// ClientLeaf is a certificate by which the operator's own are known to an independent
// registry.
func (a *Authorities) ClientLeaf(suffix string) Leaf {
	return Leaf{Suffix: suffix, Trusted: a.Clients.Bundle(), Source: a.Clients.Source}
}

// Reissue has cert-manager issue certificates again that the present CA did not
// sign, as after its Secret was deleted: cert-manager lets them be until they are
// renewed. It waits for the first of them.
func Reissue(ctx context.Context, o *operand.Objects, leaves []Leaf) verdict.Verdict {
	for _, leaf := range leaves {
		name := o.Registry.Name + leaf.Suffix
		content, err := o.SecretValue(ctx, name, corev1.TLSCertKey)
		if err != nil {
			return verdict.Failed(err)
		}
		if SignedBy(content, leaf.Trusted) {
			continue
		}
		// cert-manager may have issued it since, and what asks for it is newer than what was read.
		if now, err := o.SecretNow(ctx, name); err != nil {
			return verdict.Failed(err)
		} else if now != nil && SignedBy(now.Data[corev1.TLSCertKey], leaf.Trusted) {
			continue
		}
		if leaf.Shown && o.Registry.Spec.TLS.IssuerRef != nil {
			return verdict.Waiting(operatorv1alpha1.ReasonCAMismatch, "the certificate in Secret %s, from the issuer in spec.tls.issuerRef, is not signed by a CA in spec.tls.caBundle: set spec.tls.caBundle to the CA certificates of that issuer", name)
		}
		if o.ReadOnly() {
			return verdict.Waiting(operatorv1alpha1.ReasonCAReplaced, "the certificate in Secret %s is not signed by the CA in %s, which was replaced; nothing is changed now, and the operator asks cert-manager to issue it again when %s", name, leaf.Source, o.ReadOnlyUntil()).In(verdict.Vigil)
		}
		if err := renew(ctx, o, name); err != nil {
			return verdict.Failed(err)
		}
		return verdict.Waiting(operatorv1alpha1.ReasonCAReplaced, "the certificate in Secret %s is not signed by the CA in %s, which was replaced; waiting for cert-manager to issue it again", name, leaf.Source).In(verdict.Soon)
	}
	return verdict.Verdict{}
}

// renew asks cert-manager to issue a certificate again, as "cmctl renew" does. The
// Secret stays as it is until then.
func renew(ctx context.Context, o *operand.Objects, name string) error {
	certificate := &certmanagerv1.Certificate{}
	if err := o.Client.Get(ctx, client.ObjectKey{Namespace: o.Registry.Namespace, Name: name}, certificate); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := certificate.DeepCopy()
	if !RequestIssuance(certificate, o.Now) {
		return nil
	}
	if err := o.Writer().PatchStatus(ctx, before, certificate); err != nil {
		return fmt.Errorf("ask cert-manager to issue Certificate %s again: %w", name, err)
	}
	return nil
}

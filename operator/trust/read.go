package trust

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
)

// Read reads the CAs of a registry that exist by now, and what was published of them.
func Read(ctx context.Context, o *operand.Objects) (*Authorities, error) {
	a, registry := &Authorities{}, o.Registry
	if external := registry.Spec.Etcd.External; external != nil {
		content, err := o.SecretValue(ctx, external.TLSSecretRef.Name, operand.CAKey)
		if err != nil {
			return nil, err
		}
		a.Etcd = Authority{Source: "Secret " + external.TLSSecretRef.Name, Current: content}
	} else if err := a.Etcd.read(ctx, o, contract.EtcdCASuffix); err != nil {
		return nil, err
	}
	if registry.Spec.TLS.IssuerRef != nil {
		a.Serving = Authority{Source: "spec.tls.caBundle", Current: NonEmpty(registry.Spec.TLS.CABundle)}
	} else if err := a.Serving.read(ctx, o, contract.ServingCASuffix); err != nil {
		return nil, err
	}
	if registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		if err := a.Clients.read(ctx, o, contract.ClientCASuffix); err != nil {
			return nil, err
		}
	}
	if err := a.readPublished(ctx, o); err != nil {
		return nil, err
	}
	return a, a.readIssued(ctx, o)
}

// read reads the CA in a Secret of cert-manager.
func (a *Authority) read(ctx context.Context, o *operand.Objects, suffix string) error {
	content, err := o.SecretValue(ctx, o.Name(suffix), corev1.TLSCertKey)
	a.Source, a.Current = "Secret "+o.Name(suffix), NonEmpty(content)
	return err
}

// readPublished reads what clients were given, where no one but the operator and the
// administrators of the host cluster can write it: in the APIServices, and in the status.
func (a *Authorities) readPublished(ctx context.Context, o *operand.Objects) error {
	status := o.Registry.Status
	a.Clients.Published = Valid(status.ClientCABundle, o.Now)
	if o.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		if status.Endpoint != nil {
			a.Serving.Published = Valid(status.Endpoint.CABundle, o.Now)
		}
		return nil
	}
	for _, reference := range status.Inventory {
		if reference.Kind != "APIService" {
			continue
		}
		service := &apiregistrationv1.APIService{}
		// The cache can't tell whose an APIService is that has lost its labels.
		if err := o.Live.Get(ctx, client.ObjectKey{Name: reference.Name}, service); client.IgnoreNotFound(err) != nil {
			return err
		}
		if apply.Belongs(service, o.Owner()) {
			a.Serving.Published = Union(a.Serving.Published, Valid(service.Spec.CABundle, o.Now))
		}
	}
	return nil
}

// readIssued counts the CA of an issuer of the user's as published where it has signed the
// servers' certificate and spec.tls.caBundle does not have it: that is a mistake to report,
// but nothing to cut the host cluster off for.
func (a *Authorities) readIssued(ctx context.Context, o *operand.Objects) error {
	if o.Registry.Spec.TLS.IssuerRef == nil {
		return nil
	}
	secret, err := o.Secret(ctx, o.Name(contract.ServingSuffix))
	if err != nil || secret == nil {
		return err
	}
	shown, issuer := secret.Data[corev1.TLSCertKey], secret.Data[operand.CAKey]
	if !SignedBy(shown, a.Serving.Bundle()) && NonEmpty(issuer) != nil && SignedBy(shown, issuer) {
		a.Serving.Published = Union(a.Serving.Published, Valid(issuer, o.Now))
	}
	return nil
}

// Missing says which of the CAs that a registry brings itself are not known at the
// moment, or nothing. That of an external etcd is checked when etcd is asked.
func (a *Authorities) Missing(registry *operatorv1alpha1.ClusterRegistry) string {
	brings := []Authority{a.Serving}
	if registry.Spec.Etcd.External == nil {
		brings = append(brings, a.Etcd)
	}
	if registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		brings = append(brings, a.Clients)
	}
	var out []string
	for _, authority := range brings {
		if authority.Current == nil {
			out = append(out, authority.Source)
		}
	}
	return strings.Join(out, ", ")
}

// Complete reports whether there is something to publish of all CAs that a registry
// brings itself.
func (a *Authorities) Complete(registry *operatorv1alpha1.ClusterRegistry) bool {
	return (len(a.Etcd.Current) > 0 || registry.Spec.Etcd.External != nil) && len(a.Serving.Bundle()) > 0 &&
		(registry.Spec.Mode == operatorv1alpha1.ModeAggregated || len(a.Clients.Bundle()) > 0)
}

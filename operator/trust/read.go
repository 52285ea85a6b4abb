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
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operand"
)

// Read reads the CAs of a registry that exist by now, and what was published of them.
// The generations in use of etcd's CA are given, since the record of etcd's identity has them.
// A damaged record is no error here, so that the status says it.
func Read(ctx context.Context, o *operand.Objects, ofEtcd generation.InUse) (*Authorities, error) {
	a, registry := &Authorities{}, o.Registry
	err := a.readGenerations(ctx, o)
	if err != nil {
		return nil, err
	}
	if external := registry.Spec.Etcd.External; external != nil {
		content, err := o.SecretValue(ctx, external.TLSSecretRef.Name, operand.CAKey)
		if err != nil {
			return nil, err
		}
		a.Etcd = Authority{Source: "Secret " + external.TLSSecretRef.Name, Current: content}
	} else if a.Etcd, err = read(ctx, o, contract.EtcdCASuffix, ofEtcd); err != nil {
		return nil, err
	}
	rotation := registry.Spec.TLS.Rotation
	if registry.Spec.TLS.IssuerRef != nil {
		a.Serving = Authority{Source: "spec.tls.caBundle", Current: NonEmpty(registry.Spec.TLS.CABundle)}
	} else if a.Serving, err = readRecorded(ctx, o, contract.ServingCASuffix, contract.ServingSuffix, a.recorded.Serving, rotation.Serving); err != nil {
		return nil, err
	}
	if registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		if a.Clients, err = readRecorded(ctx, o, contract.ClientCASuffix, contract.AdminSuffix, a.recorded.Clients, rotation.Client); err != nil {
			return nil, err
		}
	}
	if err := a.readPublished(ctx, o); err != nil {
		return nil, err
	}
	return a, a.readIssued(ctx, o)
}

// readRecorded reads a CA whose generations in use are recorded, if they are.
func readRecorded(ctx context.Context, o *operand.Objects, ca, leaf string, recorded generation.InUse, desired int32) (Authority, error) {
	if recorded == (generation.InUse{}) {
		var err error
		if recorded, err = FirstInUse(ctx, o, ca, leaf, desired); err != nil {
			return Authority{}, err
		}
	}
	return read(ctx, o, ca, recorded)
}

// read reads the generations in use of a CA, each from a Secret of cert-manager.
func read(ctx context.Context, o *operand.Objects, suffix string, inUse generation.InUse) (Authority, error) {
	name := o.Name(contract.Generation(suffix, inUse.Signing))
	current, err := o.SecretValue(ctx, name, corev1.TLSCertKey)
	a := Authority{Source: "Secret " + name, InUse: inUse, Current: NonEmpty(current)}
	if err != nil || inUse.Also == 0 {
		return a, err
	}
	also, err := o.SecretValue(ctx, o.Name(contract.Generation(suffix, inUse.Also)), corev1.TLSCertKey)
	a.Also = NonEmpty(also)
	return a, err
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

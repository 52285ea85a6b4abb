package trust

import (
	"context"
	"slices"
	"strings"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/issuance"
	"github.com/clusterregistry/operator/operator/operand"
)

// Read reads the CAs of a registry that exist by now, and what was published of them.
// The generations in use of etcd's CA are given, since the record of etcd's identity has them,
// and the copy that is there of the record of the others.
// A damaged record is no error here, so that the status says it.
func Read(ctx context.Context, o *operand.Objects, ofEtcd generation.InUse, copied Copy) (*Authorities, error) {
	a, registry := &Authorities{}, o.Registry
	err := a.readGenerations(ctx, o, copied)
	if err != nil {
		return nil, err
	}
	if external := registry.Spec.Etcd.External; external != nil {
		content, err := o.SecretValue(ctx, external.TLSSecretRef.Name, operand.CAKey)
		if err != nil {
			return nil, err
		}
		a.Etcd = Authority{Source: "Secret " + external.TLSSecretRef.Name, Current: content}
	} else if a.Etcd, err = read(ctx, o, contract.EtcdCASuffix, Recorded{InUse: ofEtcd}); err != nil {
		return nil, err
	}
	rotation := registry.Spec.TLS.Rotation
	if registry.Spec.TLS.IssuerRef != nil {
		a.Serving = Authority{Source: "spec.tls.caBundle", Current: NonEmpty(registry.Spec.TLS.CABundle)}
	} else if a.Serving, err = readRecorded(ctx, o, contract.ServingCASuffix, contract.ServingSuffix, a.recorded.Serving, rotation.Serving, nil, 0); err != nil {
		return nil, err
	}
	if registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		accepted := Valid(registry.Status.ClientCABundle, o.Now)
		if a.Clients, err = readRecorded(ctx, o, contract.ClientCASuffix, contract.AdminSuffix, a.recorded.Clients, rotation.Client, accepted, rotation.Drop.Client); err != nil {
			return nil, err
		}
	}
	if err := a.readPublished(ctx, o); err != nil {
		return nil, err
	}
	a.Etcd.identify(false)
	a.Serving.identify(Copied(registry))
	a.Clients.identify(registry.Spec.Mode == operatorv1alpha1.ModeIndependent)
	return a, a.readIssued(ctx, o)
}

// readRecorded reads a CA whose generations in use are recorded, if they are. Where they are
// not, those that were accepted are still to be dropped, from the oldest one on, unless they are
// dropped.
func readRecorded(ctx context.Context, o *operand.Objects, ca, leaf string, recorded Recorded, desired int32, accepted []byte, dropped int32) (Authority, error) {
	if recorded == (Recorded{}) {
		first, err := FirstInUse(ctx, o, ca, leaf, desired)
		if err != nil {
			return Authority{}, err
		}
		recorded.InUse = first
		for _, certificate := range Parse(accepted) {
			if n := generationOf(o.Name(ca), certificate.Subject.CommonName); n > dropped && n < first.Signing && (recorded.Also == 0 || n < recorded.Also) {
				recorded.Also = n
			}
		}
	}
	return read(ctx, o, ca, recorded)
}

// read reads the generations in use of a CA, each from a Secret of cert-manager.
func read(ctx context.Context, o *operand.Objects, suffix string, recorded Recorded) (Authority, error) {
	name := o.Name(contract.Generation(suffix, recorded.Signing))
	current, err := o.SecretValue(ctx, name, corev1.TLSCertKey)
	a := Authority{Name: o.Name(suffix), Source: "Secret " + name, InUse: recorded.InUse, Current: NonEmpty(current), NextKey: recorded.NextKey, Reissued: recorded.since(o.Now)}
	if err != nil || a.InUse.Also == 0 {
		return a, err
	}
	name = o.Name(contract.Generation(suffix, a.InUse.Also))
	secret, err := o.Secret(ctx, name)
	if err != nil {
		return a, err
	}
	if secret != nil {
		a.Also = NonEmpty(secret.Data[corev1.TLSCertKey])
	}
	a.foreign = secret != nil && !issuance.For(secret, name, o.Name(contract.SelfSignedSuffix), certmanagerv1.IssuerKind, o.Owner())
	return a, nil
}

// identify decides whether what is in the Secret of the next generation is that CA; given is
// true where people are given it. A record that was restored by hand may lack the key of one
// that they were given: what was published has it.
func (a *Authority) identify(given bool) {
	if !a.InUse.Next() {
		return
	}
	if a.NextKey == "" && given {
		a.NextKey = a.publishedKey()
	}
	switch {
	case a.NextKey != "":
		if a.Also == nil || KeyFingerprint(a.Also) != a.NextKey {
			a.Also, a.Lost = nil, true
		}
	case a.foreign:
		a.Also = nil // someone else keeps it there, and the stage says so
	default:
		a.unrecorded = given && a.Also != nil
	}
}

// publishedKey returns the fingerprint of the key of the next generation that was published,
// that of its Secret if it was; nothing where none was.
func (a *Authority) publishedKey() string {
	key := ""
	for _, certificate := range Parse(a.Published) {
		if generationOf(a.Name, certificate.Subject.CommonName) != a.InUse.Also {
			continue
		}
		if key = KeyFingerprint(Encode(certificate)); key == KeyFingerprint(a.Also) {
			break
		}
	}
	return key
}

// readPublished reads what clients were given, where no one but the operator and the
// administrators of the host cluster can write it: in the APIServices, and in the status.
func (a *Authorities) readPublished(ctx context.Context, o *operand.Objects) error {
	status := o.Registry.Status
	a.Clients.Published = Valid(status.ClientCABundle, o.Now)
	if a.Clients.Name != "" && a.Err == nil {
		a.Clients.Forget(slices.Min(a.Clients.InUse.All()))
	}
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
			published := Valid(service.Spec.CABundle, o.Now)
			a.Serving.Published, a.Serving.Places = Union(a.Serving.Published, published), append(a.Serving.Places, published)
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

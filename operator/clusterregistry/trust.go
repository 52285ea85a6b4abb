package clusterregistry

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/verdict"
)

// readTrust reads the CAs that exist by now, and what was published of them.
func (r *Reconciler) readTrust(ctx context.Context, s *scope) error {
	registry := s.registry
	if external := registry.Spec.Etcd.External; external != nil {
		content, err := r.secretValue(ctx, registry.Namespace, external.TLSSecretRef.Name, caKey)
		if err != nil {
			return err
		}
		s.trust.Etcd = content
	} else if err := r.readAuthority(ctx, s, &s.etcdCA, contract.EtcdCASuffix); err != nil {
		return err
	}
	if registry.Spec.TLS.IssuerRef != nil {
		s.servingCA = trust.Authority{Source: "spec.tls.caBundle", Current: trust.NonEmpty(registry.Spec.TLS.CABundle)}
	} else if err := r.readAuthority(ctx, s, &s.servingCA, contract.ServingCASuffix); err != nil {
		return err
	}
	if registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		if err := r.readAuthority(ctx, s, &s.clientCA, contract.ClientCASuffix); err != nil {
			return err
		}
	}
	if err := r.readPublished(ctx, s); err != nil {
		return err
	}
	if err := r.readIssued(ctx, s); err != nil {
		return err
	}
	s.publishes()
	if len(s.trust.Clients) > 0 {
		registry.Status.ClientCABundle = s.trust.Clients
	}
	return nil
}

// publishes derives from the CAs what is rendered.
func (s *scope) publishes() {
	if s.registry.Spec.Etcd.External == nil {
		s.trust.Etcd = s.etcdCA.Current
	}
	s.trust.Serving, s.trust.Clients = s.servingCA.Bundle(), s.clientCA.Bundle()
}

// readAuthority reads the CA in a Secret of cert-manager.
func (r *Reconciler) readAuthority(ctx context.Context, s *scope, into *trust.Authority, suffix string) error {
	content, err := r.secretValue(ctx, s.registry.Namespace, s.registry.Name+suffix, corev1.TLSCertKey)
	into.Source, into.Current = "Secret "+s.registry.Name+suffix, trust.NonEmpty(content)
	return err
}

// readPublished reads what clients were given, where no one but the operator and
// the administrators of the host can write it: in the APIServices, and in the
// status.
func (r *Reconciler) readPublished(ctx context.Context, s *scope) error {
	status := s.registry.Status
	s.clientCA.Published = trust.Valid(status.ClientCABundle, s.now)
	if s.registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		if status.Endpoint != nil {
			s.servingCA.Published = trust.Valid(status.Endpoint.CABundle, s.now)
		}
		return nil
	}
	for _, reference := range status.Inventory {
		if reference.Kind != "APIService" {
			continue
		}
		service := &apiregistrationv1.APIService{}
		// The cache can't tell whose an APIService is that has lost its labels.
		if err := r.Live.Get(ctx, client.ObjectKey{Name: reference.Name}, service); client.IgnoreNotFound(err) != nil {
			return err
		}
		if apply.Belongs(service, s.owner()) {
			s.servingCA.Published = trust.Union(s.servingCA.Published, trust.Valid(service.Spec.CABundle, s.now))
		}
	}
	return nil
}

// readIssued counts the CA of an issuer of the user's as published where it has
// signed the servers' certificate and spec.tls.caBundle does not have it: that is
// a mistake to report, but nothing to cut the host off for.
func (r *Reconciler) readIssued(ctx context.Context, s *scope) error {
	if s.registry.Spec.TLS.IssuerRef == nil {
		return nil
	}
	secret, err := r.secret(ctx, s.registry.Namespace, s.registry.Name+contract.ServingSuffix)
	if err != nil || secret == nil {
		return err
	}
	shown, issuer := secret.Data[corev1.TLSCertKey], secret.Data[caKey]
	if !trust.SignedBy(shown, s.servingCA.Bundle()) && trust.NonEmpty(issuer) != nil && trust.SignedBy(shown, issuer) {
		s.servingCA.Published = trust.Union(s.servingCA.Published, trust.Valid(issuer, s.now))
	}
	return nil
}

// authorities are the CAs that the registry brings itself. That of an external
// etcd is checked when etcd is asked.
func (s *scope) authorities() []trust.Authority {
	out := []trust.Authority{s.servingCA}
	if s.registry.Spec.Etcd.External == nil {
		out = append(out, s.etcdCA)
	}
	if s.registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		out = append(out, s.clientCA)
	}
	return out
}

// missing says which CAs are not known at the moment, or nothing.
func (s *scope) missing() string {
	var out []string
	for _, authority := range s.authorities() {
		if authority.Current == nil {
			out = append(out, authority.Source)
		}
	}
	return strings.Join(out, ", ")
}

// retire stops publishing the previous CA of the servers as soon as every server
// presents a certificate that the present one signed.
func (r *Reconciler) retire(ctx context.Context, s *scope) error {
	if !s.servingCA.Replaced() || s.servingCA.Current == nil {
		return nil
	}
	pods, err := r.pods(ctx, s, componentServer)
	if err != nil {
		return err
	}
	pods = running(pods)
	answers, err := r.askServers(ctx, s, pods, s.serverName(), s.servingCA.Current)
	if err != nil {
		return err
	}
	failed := slices.ContainsFunc(answers, func(a answer) bool { return a.err != nil })
	if failed || len(answers) == 0 || len(answers) < len(pods) {
		return nil
	}
	s.servingCA.Published = nil
	s.publishes()
	return nil
}

// announce publishes the CAs that are new before the servers show a certificate
// that one of them signed.
func (r *Reconciler) announce(ctx context.Context, s *scope) verdict.Verdict {
	if s.servingCA.Current == nil || s.servingCA.Announced() || len(s.servingCA.Published) == 0 || s.readOnly {
		return done
	}
	if endpoint := s.registry.Status.Endpoint; s.registry.Spec.Mode == operatorv1alpha1.ModeIndependent && endpoint != nil {
		endpoint.CABundle = s.trust.Serving
		// That it can't be written yet is for the last stage to report.
		if v := r.kubeconfig(ctx, s, endpoint.URL); !v.Complete() && v.Err != nil {
			return v
		}
		return done
	}
	for _, service := range s.rendered.Stages[render.StageEndpoint] {
		current := &apiregistrationv1.APIService{}
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(service), current)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return verdict.Failed(err)
		case err != nil || !apply.Belongs(current, s.owner()):
			continue // it is created, or found to be another's, when its turn comes
		}
		if err := r.apply(ctx, s, service); err != nil {
			return verdict.Failed(err)
		}
	}
	return done
}

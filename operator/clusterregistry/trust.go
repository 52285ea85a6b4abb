package clusterregistry

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// authority is a CA of the registry: what signs now, and what others were told to
// trust. The two differ after the CA was replaced, until nothing that is in use
// was signed by the previous one.
type authority struct {
	// source is where current comes from, for a person.
	source string
	// current are the CA certificates in PEM, nil when there is none.
	current []byte
	// published are those that were published last, without expired ones.
	published []byte
}

// bundle returns what may be published: what signs now, first, and what was
// published before.
func (a authority) bundle() []byte { return union(a.current, a.published) }

// union returns a bundle as it is, and behind it the certificates of another one
// that it lacks.
func union(bundle, other []byte) []byte {
	out := bytes.Clone(bundle)
	known := parseCertificates(out)
	for _, certificate := range parseCertificates(other) {
		if slices.ContainsFunc(known, certificate.Equal) {
			continue
		}
		if len(out) > 0 && out[len(out)-1] != '\n' {
			out = append(out, '\n')
		}
		out = append(out, encodeCertificate(certificate)...)
		known = append(known, certificate)
	}
	return out
}

// announced reports whether all that signs now was published before.
func (a authority) announced() bool { return contains(a.published, a.current) }

// replaced reports whether something is published that does not sign any more.
func (a authority) replaced() bool { return !contains(a.current, a.published) }

// contains reports whether a bundle has all certificates of another one.
func contains(bundle, other []byte) bool {
	known := parseCertificates(bundle)
	return !slices.ContainsFunc(parseCertificates(other), func(c *x509.Certificate) bool { return !slices.ContainsFunc(known, c.Equal) })
}

// parseCertificates returns the certificates in PEM, without what is none.
func parseCertificates(content []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			return out
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, certificate)
		}
	}
}

func encodeCertificate(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// valid returns the certificates of a bundle that have not expired.
func valid(bundle []byte, now time.Time) []byte {
	var out []byte
	for _, certificate := range parseCertificates(bundle) {
		if now.Before(certificate.NotAfter) {
			out = append(out, encodeCertificate(certificate)...)
		}
	}
	return out
}

// signedBy reports whether a CA of a bundle has signed a certificate, which may be
// followed by intermediate ones. What is no certificate counts as signed, and so
// does one that has expired, since that is for others to report.
func signedBy(leaf, bundle []byte) bool {
	chain, authorities := parseCertificates(leaf), parseCertificates(bundle)
	if len(chain) == 0 || len(authorities) == 0 {
		return true
	}
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	for _, certificate := range authorities {
		options.Roots.AddCert(certificate)
	}
	for _, certificate := range chain[1:] {
		options.Intermediates.AddCert(certificate)
	}
	_, err := chain[0].Verify(options)
	var unknown x509.UnknownAuthorityError
	return !errors.As(err, &unknown)
}

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
		s.servingCA = authority{source: "spec.tls.caBundle", current: certificatesOnly(registry.Spec.TLS.CABundle)}
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
		s.trust.Etcd = s.etcdCA.current
	}
	s.trust.Serving, s.trust.Clients = s.servingCA.bundle(), s.clientCA.bundle()
}

// readAuthority reads the CA in a Secret of cert-manager.
func (r *Reconciler) readAuthority(ctx context.Context, s *scope, into *authority, suffix string) error {
	content, err := r.secretValue(ctx, s.registry.Namespace, s.registry.Name+suffix, corev1.TLSCertKey)
	into.source, into.current = "Secret "+s.registry.Name+suffix, certificatesOnly(content)
	return err
}

// certificatesOnly returns a bundle as it is, or nil when no certificate is in it.
func certificatesOnly(bundle []byte) []byte {
	if len(parseCertificates(bundle)) == 0 {
		return nil
	}
	return bundle
}

// readPublished reads what clients were given, where nobody but the operator and
// the administrators of the host can write it: in the APIServices, and in the
// status.
func (r *Reconciler) readPublished(ctx context.Context, s *scope) error {
	status := s.registry.Status
	s.clientCA.published = valid(status.ClientCABundle, s.now)
	if s.registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		if status.Endpoint != nil {
			s.servingCA.published = valid(status.Endpoint.CABundle, s.now)
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
			s.servingCA.published = union(s.servingCA.published, valid(service.Spec.CABundle, s.now))
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
	if !signedBy(shown, s.servingCA.bundle()) && certificatesOnly(issuer) != nil && signedBy(shown, issuer) {
		s.servingCA.published = union(s.servingCA.published, valid(issuer, s.now))
	}
	return nil
}

// authorities are the CAs that the registry brings itself. That of an external
// etcd is checked when etcd is asked.
func (s *scope) authorities() []authority {
	out := []authority{s.servingCA}
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
		if authority.current == nil {
			out = append(out, authority.source)
		}
	}
	return strings.Join(out, ", ")
}

// retire stops publishing the previous CA of the servers as soon as every server
// shows a certificate that the present one signed.
func (r *Reconciler) retire(ctx context.Context, s *scope) error {
	if !s.servingCA.replaced() || s.servingCA.current == nil {
		return nil
	}
	pods, err := r.pods(ctx, s, componentServer)
	if err != nil {
		return err
	}
	pods = running(pods)
	answers, err := r.askServers(ctx, s, pods, s.serverName(), s.servingCA.current)
	if err != nil {
		return err
	}
	failed := slices.ContainsFunc(answers, func(a answer) bool { return a.err != nil })
	if failed || len(answers) == 0 || len(answers) < len(pods) {
		return nil
	}
	s.servingCA.published = nil
	s.publishes()
	return nil
}

// announce publishes the CAs that are new before the servers show a certificate
// that one of them signed.
func (r *Reconciler) announce(ctx context.Context, s *scope) verdict.Verdict {
	if s.servingCA.current == nil || s.servingCA.announced() || len(s.servingCA.published) == 0 || s.readOnly {
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
			return failed(err)
		case err != nil || !apply.Belongs(current, s.owner()):
			continue // it is created, or found to be another's, when its turn comes
		}
		if err := r.apply(ctx, s, service); err != nil {
			return failed(err)
		}
	}
	return done
}

package clusterregistry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/trust"
)

// servingCA is the CA of the servers, as rotation.CA.
type servingCA struct {
	r *Reconciler
	s *scope
}

// Record implements rotation.CA.
func (c servingCA) Record(ctx context.Context, u generation.InUse) error {
	if err := c.s.retire(ctx, contract.ServingCASuffix, c.s.authorities.Serving.InUse, u); err != nil {
		return err
	}
	return c.s.authorities.Record(ctx, c.s.Objects, trust.Generations{Serving: u})
}

// Issued implements rotation.CA.
func (c servingCA) Issued(context.Context) error {
	return c.s.issued(contract.ServingCASuffix, c.s.authorities.Serving)
}

// Trusted implements rotation.CA: the host cluster, or clients, are given both.
func (c servingCA) Trusted(context.Context) error {
	if err := c.s.complete(operatorv1alpha1.ConditionCertificatesReady, c.s.lastPart()); err != nil {
		return err
	}
	if !c.s.authorities.Serving.Announced() {
		return errors.New("both CAs were published just now")
	}
	return nil
}

// Shown implements rotation.CA: every server shows a certificate of the one that signs.
func (c servingCA) Shown(ctx context.Context) error {
	if err := c.s.signed(ctx, c.s.authorities.Serving, contract.ServingSuffix); err != nil {
		return err
	}
	pods, err := c.s.serverPods(ctx)
	if err != nil {
		return err
	}
	answers, err := c.r.access(c.s).AskPods(ctx, pods, c.s.ServerName(), c.s.authorities.Serving.Current)
	if err != nil {
		return err
	}
	for _, answer := range answers {
		if answer.Err != nil {
			return fmt.Errorf("pod %s does not show a certificate of the new CA yet: %w", answer.Pod, answer.Err)
		}
	}
	return c.s.allAsked(pods, len(answers))
}

// Withdrawn implements rotation.CA: nothing else is published.
func (c servingCA) Withdrawn(context.Context) error {
	if err := c.s.complete(operatorv1alpha1.ConditionCertificatesReady, c.s.lastPart()); err != nil {
		return err
	}
	if c.s.authorities.Serving.Replaced() || c.s.authorities.Serving.Also != nil {
		return errors.New("the previous CA is still published")
	}
	return nil
}

// clientCA is the CA of the clients of an independent registry, as rotation.CA.
type clientCA struct {
	r *Reconciler
	s *scope
}

// Record implements rotation.CA.
func (c clientCA) Record(ctx context.Context, u generation.InUse) error {
	if err := c.s.retire(ctx, contract.ClientCASuffix, c.s.authorities.Clients.InUse, u); err != nil {
		return err
	}
	return c.s.authorities.Record(ctx, c.s.Objects, trust.Generations{Clients: u})
}

// Issued implements rotation.CA.
func (c clientCA) Issued(context.Context) error {
	return c.s.issued(contract.ClientCASuffix, c.s.authorities.Clients)
}

// Trusted implements rotation.CA: every server says that it accepts clients of both.
func (c clientCA) Trusted(ctx context.Context) error {
	authorities := trust.Parse(c.s.authorities.Clients.Trusted())
	return c.ask(ctx, func(shake servers.Handshake) error {
		if !shake.AcceptsAll(authorities) {
			return fmt.Errorf("pod %s does not accept clients of both CAs yet", shake.Pod)
		}
		return nil
	})
}

// Shown implements rotation.CA: the operator's own certificates are of the one that signs,
// that of a controller which is not ready, too, and the kubeconfig has the administrator's.
func (c clientCA) Shown(ctx context.Context) error {
	leaves := []string{contract.AdminSuffix}
	if len(c.s.Registry.Spec.Controllers.Functions()) > 0 {
		controller, err := c.s.SecretValue(ctx, c.s.Name(contract.ControllerSuffix), corev1.TLSCertKey)
		if err != nil {
			return err
		}
		if len(controller) > 0 {
			leaves = append(leaves, contract.ControllerSuffix)
		}
	}
	if err := c.s.signed(ctx, c.s.authorities.Clients, leaves...); err != nil {
		return err
	}
	return c.s.complete(operatorv1alpha1.ConditionCertificatesReady, c.s.lastPart())
}

// Withdrawn implements rotation.CA: every server says that it accepts clients of the one
// that signs alone, and the status has no other one for servers to come.
func (c clientCA) Withdrawn(ctx context.Context) error {
	current := c.s.authorities.Clients.Current
	if string(c.s.Before.ClientCABundle) != string(c.s.authorities.Clients.Bundle()) {
		return errors.New("status.clientCABundle was changed just now")
	}
	return c.ask(ctx, func(shake servers.Handshake) error {
		if !shake.AcceptsOnly(trust.Parse(current)) {
			return fmt.Errorf("pod %s still accepts clients of the previous CA", shake.Pod)
		}
		return nil
	})
}

// ask looks at what every server shows to clients.
func (c clientCA) ask(ctx context.Context, look func(servers.Handshake) error) error {
	pods, err := c.s.serverPods(ctx)
	if err != nil {
		return err
	}
	shakes := c.r.access(c.s).Handshakes(ctx, pods)
	for _, shake := range shakes {
		if shake.Err != nil {
			return shake.Err
		}
		if err := look(shake); err != nil {
			return err
		}
	}
	return c.s.allAsked(pods, len(shakes))
}

// serverPods returns the servers that are not terminating.
func (s *scope) serverPods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := s.Pods(ctx, operand.ComponentServer)
	return operand.Staying(operand.Running(pods)), err
}

// allAsked returns an error unless there are servers, and all were asked.
func (s *scope) allAsked(pods []corev1.Pod, asked int) error {
	if len(pods) == 0 || asked < len(pods) {
		return fmt.Errorf("%d of %d servers are ready to be asked", asked, len(pods))
	}
	return nil
}

// issued returns nil when the other generation of a CA has a certificate.
func (s *scope) issued(suffix string, a trust.Authority) error {
	if a.Also == nil {
		return fmt.Errorf("there is no CA certificate in Secret %s yet", s.Name(contract.Generation(suffix, a.InUse.Also)))
	}
	return nil
}

// signed returns nil when the CA that signs has signed the certificates in Secrets.
func (s *scope) signed(ctx context.Context, a trust.Authority, suffixes ...string) error {
	if a.Current == nil {
		return fmt.Errorf("%s has no CA certificate", a.Source)
	}
	for _, suffix := range suffixes {
		content, err := s.SecretValue(ctx, s.Name(suffix), corev1.TLSCertKey)
		if err != nil {
			return err
		}
		if len(content) == 0 || !trust.SignedBy(content, a.Current) {
			return fmt.Errorf("the certificate in Secret %s is not of the CA in %s yet", s.Name(suffix), a.Source)
		}
	}
	return nil
}

// complete returns nil when parts of the registry are ready.
func (s *scope) complete(kinds ...string) error {
	for _, kind := range kinds {
		if v, reached := s.verdicts[kind]; !reached || !v.Complete() {
			return fmt.Errorf("%s: %s", kind, v.Message)
		}
	}
	return nil
}

// lastPart is the condition of the last stage, by which the registry is published.
func (s *scope) lastPart() string {
	all := parts(s.Registry.Spec.Mode)
	return all[len(all)-1]
}

// retire has the Secrets of generations that are in use no more go: the Certificate and the
// Issuer go since they are rendered no more, but what cert-manager made stays. In the
// inventory, it is known before the generation is forgotten.
func (s *scope) retire(ctx context.Context, suffix string, from, to generation.InUse) error {
	for _, n := range from.All() {
		if slices.Contains(to.All(), n) {
			continue
		}
		secret := &unstructured.Unstructured{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		secret.SetNamespace(s.Registry.Namespace)
		secret.SetName(s.Name(contract.Generation(suffix, n)))
		if err := s.Enlist(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}

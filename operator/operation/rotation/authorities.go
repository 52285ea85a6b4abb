package rotation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/servers"
	"github.com/clusterregistry/operator/operator/trust"
)

// ownCA is what all CAs of a registry have in common as CA.
type ownCA struct {
	d Drive
	// suffix is that of the name of the first generation, and ca what is in use.
	suffix string
	ca     *trust.Authority
	// write writes down what is in use, where that is recorded of this CA.
	write func(context.Context, generation.InUse) error
}

// Record implements CA.
func (c ownCA) Record(ctx context.Context, u generation.InUse) error {
	if err := c.d.retire(ctx, c.suffix, c.ca.InUse, u); err != nil {
		return err
	}
	return c.write(ctx, u)
}

// Issued implements CA: the other generation of the CA has a certificate.
func (c ownCA) Issued(context.Context) error {
	if c.ca.Also != nil {
		return nil
	}
	name := c.d.Name(contract.Generation(c.suffix, c.ca.InUse.Also))
	waiting := fmt.Errorf("waiting for cert-manager to issue Certificate %s, the new CA", name)
	if v, _ := c.d.Verdict(operatorv1alpha1.ConditionCertificatesReady); !v.Complete() {
		return fmt.Errorf("%w (CertificatesReady: %s)", waiting, v.Message)
	}
	return waiting
}

// writeGenerations records the generations of the CAs of servers and clients. The copy of the
// record comes after it, but for a step back: the one of the two that is further counts, so that
// a step is taken with the first that is further, and taken back with the last.
func (d Drive) writeGenerations(ctx context.Context, in trust.Generations) error {
	if d.Authorities.TakesBack(in) {
		if err := d.writeCopy(ctx, d.Authorities.CopyWith(in)); err != nil {
			return err
		}
	}
	if err := d.Authorities.Record(ctx, d.Objects, in); err != nil {
		return err
	}
	return d.KeepCopy(ctx)
}

// KeepCopy keeps a copy of that record beside the identity of the registry's own etcd,
// which counts where the record gets lost, or is brought back from before.
func (d Drive) KeepCopy(ctx context.Context) error {
	return d.writeCopy(ctx, d.Authorities.Copy())
}

// writeCopy writes that copy where it is another one.
func (d Drive) writeCopy(ctx context.Context, now trust.Copy) error {
	known := d.Authorities.Err == nil && d.Identity.Record != nil
	if !known || d.ReadOnly() {
		return nil
	}
	record := *d.Identity.Record
	if record.ServingCA == now.Serving && record.ClientCA == now.Clients {
		return nil
	}
	record.ServingCA, record.ClientCA = now.Serving, now.Clients
	return d.Identity.Write(ctx, &record)
}

// servingCA is the CA of the servers, as CA.
type servingCA struct{ ownCA }

func (d Drive) servingCA() servingCA {
	return servingCA{ownCA{d, contract.ServingCASuffix, &d.Authorities.Serving, func(ctx context.Context, u generation.InUse) error {
		return d.writeGenerations(ctx, trust.Generations{Serving: trust.Recorded{InUse: u}})
	}}}
}

// Trusted implements CA: the host cluster, or clients, are given both.
func (c servingCA) Trusted(context.Context) error {
	if err := c.d.Await(operatorv1alpha1.ConditionCertificatesReady, pass.Last(c.d.Registry.Spec.Mode)); err != nil {
		return err
	}
	if !c.ca.Announced() {
		return errors.New("waiting until both CAs are published where clients, or the host cluster, find them")
	}
	return nil
}

// Shown implements CA: every server shows a certificate of the one that signs, and so does the
// controller to those who ask its feed.
func (c servingCA) Shown(ctx context.Context) error {
	if waits, err := trust.FeedShows(ctx, c.d.Objects, c.d.Authorities.Serving); err != nil || waits != "" {
		return cmp.Or(err, errors.New(waits))
	}
	if err := c.d.signed(ctx, c.d.Authorities.Serving, contract.ServingSuffix); err != nil {
		return err
	}
	pods, err := c.d.serverPods(ctx)
	if err != nil {
		return err
	}
	answers, err := c.d.Access.AskPods(ctx, pods, c.d.ServerName(), c.d.Authorities.Serving.Current)
	if err != nil {
		return err
	}
	for _, answer := range answers {
		if answer.Err != nil {
			return fmt.Errorf("waiting until pod %s shows a certificate of the new CA, for which its node takes up to two minutes: %w", answer.Pod, answer.Err)
		}
	}
	return c.d.allAsked(pods, len(answers))
}

// Withdrawn implements CA: nothing else is published.
func (c servingCA) Withdrawn(context.Context) error {
	if err := c.d.Await(operatorv1alpha1.ConditionCertificatesReady, pass.Last(c.d.Registry.Spec.Mode)); err != nil {
		return err
	}
	if c.ca.Replaced() || c.ca.Also != nil {
		return errors.New("waiting until the previous CA is no longer published")
	}
	return nil
}

// clientCA is the CA of the clients of an independent registry, as CA.
type clientCA struct{ ownCA }

func (d Drive) clientCA() clientCA {
	return clientCA{ownCA{d, contract.ClientCASuffix, &d.Authorities.Clients, func(ctx context.Context, u generation.InUse) error {
		return d.writeGenerations(ctx, trust.Generations{Clients: trust.Recorded{InUse: u}})
	}}}
}

// Trusted implements CA: both are the registry's own, and every server says that it
// accepts clients of both.
func (c clientCA) Trusted(ctx context.Context) error {
	if err := c.d.Await(operatorv1alpha1.ConditionCertificatesReady); err != nil {
		return err
	}
	authorities := trust.Parse(c.d.Authorities.Clients.Trusted())
	return c.ask(ctx, func(shake servers.Handshake) error {
		if !shake.AcceptsAll(authorities) {
			return fmt.Errorf("waiting until pod %s accepts clients of both CAs, for which its node takes up to two minutes", shake.Pod)
		}
		return nil
	})
}

// Shown implements CA: the operator's own certificates are of the one that signs,
// that of a controller which is not ready, too, the kubeconfig has the administrator's, and the
// controller uses its own.
func (c clientCA) Shown(ctx context.Context) error {
	leaves := []string{contract.AdminSuffix}
	if len(c.d.Registry.Spec.Controllers.Functions()) > 0 {
		controller, err := c.d.SecretValue(ctx, c.d.Name(contract.ControllerSuffix), corev1.TLSCertKey)
		if err != nil {
			return err
		}
		if len(controller) > 0 {
			leaves = append(leaves, contract.ControllerSuffix)
		}
	}
	if err := c.d.signed(ctx, *c.ca, leaves...); err != nil {
		return err
	}
	if err := c.d.Await(operatorv1alpha1.ConditionCertificatesReady, pass.Last(c.d.Registry.Spec.Mode)); err != nil {
		return err
	}
	return c.followed(ctx)
}

// How long after the first certificate of the new CA was seen a controller shows that one or a
// later one at the latest: a node takes up to two minutes to bring a Secret to a pod, and the
// controller reads it every five. One that was started a minute after it has read it at the
// start.
const (
	controllerFollows = 9 * time.Minute
	controllerReads   = time.Minute
)

// followed returns nil when each replica of the controller shows a certificate of the CA that
// signs, which the one in its Secret is. It is not to be refused when the previous CA is
// dropped: there is no one to ask what it shows.
func (c clientCA) followed(ctx context.Context) error {
	content, err := c.d.SecretValue(ctx, c.d.Name(contract.ControllerSuffix), corev1.TLSCertKey)
	if err != nil || len(content) == 0 {
		return err
	}
	pods, err := c.d.Pods(ctx, operand.ComponentController)
	if err != nil {
		return err
	}
	pods = operand.Staying(operand.Running(pods))
	if len(pods) == 0 {
		return nil
	}
	issued := c.ca.Reissued
	if issued.IsZero() {
		// That of the certificate does not tell: it may be renewed more often than that.
		issued = c.d.Now.Truncate(time.Second)
		noted := trust.Recorded{InUse: c.ca.InUse, Reissued: issued.UTC().Format(time.RFC3339)}
		if err := c.d.writeGenerations(ctx, trust.Generations{Clients: noted}); err != nil {
			return fmt.Errorf("record since when the controller has a certificate of the new CA: %w", err)
		}
		c.ca.Reissued = issued
	}
	if !c.d.Now.Before(issued.Add(controllerFollows)) {
		return nil
	}
	for _, pod := range pods {
		if pod.CreationTimestamp.Time.Before(issued.Add(controllerReads)) {
			return fmt.Errorf("waiting until pod %s uses the certificate of the new CA, which it does by %s, or once it is replaced (kubectl --namespace=%s rollout restart deployment/%s)",
				pod.Name, issued.Add(controllerFollows).UTC().Format(time.RFC3339), c.d.Registry.Namespace, c.d.Name(contract.ControllerSuffix))
		}
	}
	return nil
}

// Withdrawn implements CA: every server says that it accepts no clients of the
// previous one, and the status does not have it for servers to come.
func (c clientCA) Withdrawn(ctx context.Context) error {
	accepted := c.ca.Bundle()
	if string(c.d.Before.ClientCABundle) != string(accepted) {
		return errors.New("status.clientCABundle was changed just now")
	}
	return c.ask(ctx, func(shake servers.Handshake) error {
		if !shake.AcceptsOnly(trust.Parse(accepted)) {
			return fmt.Errorf("waiting until pod %s no longer accepts clients of the previous CA, for which its node takes up to two minutes", shake.Pod)
		}
		return nil
	})
}

// ask looks at what every server shows to clients.
func (c clientCA) ask(ctx context.Context, look func(servers.Handshake) error) error {
	pods, err := c.d.serverPods(ctx)
	if err != nil {
		return err
	}
	shakes := c.d.Access.Handshakes(ctx, pods)
	for _, shake := range shakes {
		if shake.Err != nil {
			return shake.Err
		}
		if err := look(shake); err != nil {
			return err
		}
	}
	return c.d.allAsked(pods, len(shakes))
}

// serverPods returns the servers that are not terminating.
func (d Drive) serverPods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := d.Pods(ctx, operand.ComponentServer)
	return operand.Staying(operand.Running(pods)), err
}

// allAsked returns an error unless there are servers, and all were asked.
func (d Drive) allAsked(pods []corev1.Pod, asked int) error {
	if len(pods) == 0 || asked < len(pods) {
		return fmt.Errorf("waiting until all servers can be asked: %d of %d are ready", asked, len(pods))
	}
	return nil
}

// signed returns nil when the CA that signs has signed the certificates in Secrets.
func (d Drive) signed(ctx context.Context, a trust.Authority, suffixes ...string) error {
	if a.Current == nil {
		return fmt.Errorf("%s has no CA certificate", a.Source)
	}
	for _, suffix := range suffixes {
		content, err := d.SecretValue(ctx, d.Name(suffix), corev1.TLSCertKey)
		if err != nil {
			return err
		}
		if len(content) == 0 || !trust.SignedBy(content, a.Current) {
			return fmt.Errorf("waiting for cert-manager to issue Certificate %s by the CA in %s", d.Name(suffix), a.Source)
		}
	}
	return nil
}

// retire has the Secrets of generations that are in use no more go: the Certificate and the
// Issuer go since they are rendered no more, but what cert-manager made stays. In the
// inventory, it is known before the generation is forgotten.
func (d Drive) retire(ctx context.Context, suffix string, from, to generation.InUse) error {
	for _, n := range from.All() {
		if slices.Contains(to.All(), n) {
			continue
		}
		secret := &unstructured.Unstructured{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		secret.SetNamespace(d.Registry.Namespace)
		secret.SetName(d.Name(contract.Generation(suffix, n)))
		if err := d.Enlist(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}

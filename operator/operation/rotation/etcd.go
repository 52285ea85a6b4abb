package rotation

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/handshake"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/trust"
)

// etcdCA is the CA of the registry's own etcd, as CA. Members and servers read whom
// they trust once, at start: a change of that replaces them, by the stages, one at a time.
type etcdCA struct{ ownCA }

func (d Drive) etcdCA() etcdCA {
	return etcdCA{ownCA{d, contract.EtcdCASuffix, &d.Authorities.Etcd, d.writeEtcdCA}}
}

// writeEtcdCA records the generations of etcd's CA. The record has the fingerprints of both CAs
// while two sign for what is in use.
func (d Drive) writeEtcdCA(ctx context.Context, u generation.InUse) error {
	before, record := d.Authorities.Etcd, *d.Identity.Record
	record.Generations, record.AlsoCA = u, ""
	if u.Signing != before.InUse.Signing {
		record.CA, record.AlsoCA = trust.KeyFingerprint(before.Also), trust.KeyFingerprint(before.Current)
	}
	return d.Identity.Write(ctx, &record)
}

// Trusted implements CA: all members and servers are of a template with both, and
// members say so.
func (c etcdCA) Trusted(ctx context.Context) error {
	if err := c.replaced(); err != nil {
		return err
	}
	authorities := trust.Parse(c.d.Authorities.Etcd.Trusted())
	return c.ask(ctx, func(where string, shown handshake.Shown) error {
		if !shown.AcceptsAll(authorities) {
			return fmt.Errorf("waiting until %s trusts both CAs", where)
		}
		return nil
	})
}

// Shown implements CA: members show certificates of the one that signs to clients
// and to each other, and the client certificate is of it.
func (c etcdCA) Shown(ctx context.Context) error {
	if err := c.d.signed(ctx, c.d.Authorities.Etcd, contract.EtcdServerSuffix, contract.EtcdPeerSuffix, contract.EtcdClientSuffix); err != nil {
		return err
	}
	return c.ask(ctx, func(where string, shown handshake.Shown) error {
		if !trust.SignedBy(shown.Chain, c.d.Authorities.Etcd.Current) {
			return fmt.Errorf("waiting until %s shows a certificate of the new CA, for which its node takes up to two minutes", where)
		}
		return nil
	})
}

// Servers looks whether all servers are of a template without the previous CA. With that
// they have the client certificate of the new one, which they read at start and follow.
func (c etcdCA) Servers(context.Context) error { return c.replaced() }

// Withdrawn implements CA: all members are of a template without the previous CA,
// and say so.
func (c etcdCA) Withdrawn(ctx context.Context) error {
	if err := c.replaced(); err != nil {
		return err
	}
	current := trust.Parse(c.d.Authorities.Etcd.Current)
	return c.ask(ctx, func(where string, shown handshake.Shown) error {
		if !shown.AcceptsOnly(current) {
			return fmt.Errorf("waiting until %s no longer trusts the previous CA", where)
		}
		return nil
	})
}

// replaced returns nil when all members and servers are as they are rendered, and ready.
func (c etcdCA) replaced() error {
	if err := c.d.Await(operatorv1alpha1.ConditionCertificatesReady, operatorv1alpha1.ConditionEtcdReady, operatorv1alpha1.ConditionServerReady); err != nil {
		return err
	}
	if why := c.d.Unsteady(); why != "" {
		return fmt.Errorf("waiting until this is resolved: %s", why)
	}
	return nil
}

// ask looks at what every member shows, to clients and to other members.
func (c etcdCA) ask(ctx context.Context, look func(where string, shown handshake.Shown) error) error {
	pods, err := c.d.Pods(ctx, operand.ComponentEtcd)
	if err != nil {
		return err
	}
	pods = operand.Staying(operand.Running(pods))
	if want := len(c.d.Identity.Members()); len(pods) != want {
		return fmt.Errorf("waiting until all etcd members can be asked: %d of %d have a pod", len(pods), want)
	}
	var client *tls.Certificate
	if config := c.d.Members.Access.TLS; config != nil && len(config.Certificates) > 0 {
		client = &config.Certificates[0]
	}
	for _, pod := range pods {
		for _, port := range []string{contract.EtcdClientPort, contract.EtcdPeerPort} {
			shown, err := c.d.Access.Handshake(ctx, handshake.Server{Address: net.JoinHostPort(pod.Status.PodIP, port), Client: client})
			if err != nil {
				return err
			}
			if err := look(fmt.Sprintf("pod %s, port %s,", pod.Name, port), shown); err != nil {
				return err
			}
		}
	}
	return nil
}

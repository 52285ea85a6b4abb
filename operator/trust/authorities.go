package trust

import (
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/render"
)

// Authorities are the CAs of one registry.
type Authorities struct {
	// Etcd signs for etcd's members and for what asks them, Serving for the servers, and
	// Clients for the clients of an independent registry.
	Etcd, Serving, Clients Authority
	// ClientsOfEtcdFirst is true while the previous generation of Etcd is withdrawn from those
	// that ask members, and not from members yet.
	ClientsOfEtcdFirst bool
	// Err says why it is not known which generations are in use; then nothing may be
	// changed.
	Err error

	// recorded is what is recorded, and stored what the record itself has of it.
	recorded, stored Generations
}

// Rendered returns what is rendered, and so published, of the CAs.
func (a Authorities) Rendered() render.Trust {
	return render.Trust{Etcd: a.Etcd.Bundle(), EtcdClients: a.EtcdClients().Bundle(), Serving: a.Serving.Bundle(), Clients: a.Clients.Bundle()}
}

// EtcdClients returns Etcd as those trust it that ask members: servers and the operator.
func (a Authorities) EtcdClients() Authority {
	ca := a.Etcd
	if a.ClientsOfEtcdFirst {
		ca.Withdraw()
	}
	return ca
}

// InUse returns the generations that are in use.
func (a Authorities) InUse() render.Authorities {
	return render.Authorities{Etcd: a.Etcd.InUse, Serving: a.Serving.InUse, Clients: a.Clients.InUse}
}

// Describe enters generation and use into the status of a registry's CAs.
func (a Authorities) Describe(registry *operatorv1alpha1.ClusterRegistry) {
	for suffix, ca := range map[string]Authority{contract.EtcdCASuffix: a.Etcd, contract.ServingCASuffix: a.Serving, contract.ClientCASuffix: a.Clients} {
		for _, n := range ca.InUse.All() {
			if ca.Lost && n == ca.InUse.Also {
				continue // what is there by now is not the one that others trust
			}
			for i := range registry.Status.Certificates {
				if c := &registry.Status.Certificates[i]; c.Name == registry.Name+contract.Generation(suffix, n) {
					c.Generation, c.Use = n, operatorv1alpha1.CATrusted
					if n != ca.InUse.Also {
						c.Use = operatorv1alpha1.CASigning
					}
				}
			}
		}
	}
}

// Lost reports whether a Certificate is that of a CA which is lost: nothing uses what is issued
// for it, so that nothing is to wait for it, least of all the rotation that replaces it.
func (a Authorities) Lost(certificate string) bool {
	for _, ca := range []Authority{a.Serving, a.Clients} {
		if ca.Lost && generationOf(ca.Name, certificate) == ca.InUse.Also {
			return true
		}
	}
	return false
}

// ServingGenerations returns the generations of the registry's own CA of servers of which
// there are Secrets, whether another issuer has taken its place or not.
func (a Authorities) ServingGenerations() []int32 { return a.recorded.Serving.All() }

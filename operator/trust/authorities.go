package trust

import "github.com/clusterregistry/operator/operator/render"

// Authorities are the CAs of one registry.
type Authorities struct {
	// Etcd signs for etcd's members and for what asks them, Serving for the servers, and
	// Clients for the clients of an independent registry.
	Etcd, Serving, Clients Authority
}

// Rendered returns what is rendered, and so published, of the CAs.
func (a Authorities) Rendered() render.Trust {
	return render.Trust{Etcd: a.Etcd.Current, Serving: a.Serving.Bundle(), Clients: a.Clients.Bundle()}
}

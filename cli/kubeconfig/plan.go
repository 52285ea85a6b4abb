package kubeconfig

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// change is an entry that a person has to confirm.
type change struct {
	// before is what the kubeconfig has, nil for nothing.
	before *entry
	after  entry
	// user is the one that the person has set for the entry's context, other than that
	// of the entry: whose credentials go where the entry leads.
	user string
	// kept is what of the entry's user stays, as it is shown.
	kept string
	// otherCA says that it was marked by a registry of this address with another CA.
	otherCA bool
}

// plan is what becomes of a kubeconfig.
type plan struct {
	// changes are new entries, and those that lead elsewhere than before.
	changes []change
	// same are those that stay as they are.
	same []entry
	// pruned are the names of those that go, of so many in the scope.
	pruned []string
	scope  int
	// refused are clusters that get no entry, with the reason of each. What the
	// kubeconfig has of them stays.
	refused []refusal
}

type refusal struct {
	cluster string
	reason  string
}

// makePlan compares a kubeconfig, and those that kubectl reads beside it, with the
// entries that it should have. Refused are clusters that are in the registry and get
// no entry. A scope is pruned when complete says that all of it was listed.
func makePlan(config *clientcmdapi.Config, beside []*clientcmdapi.Config, entries []entry, refused []refusal, origin mark, complete bool) plan {
	out := plan{refused: refused}
	listed := map[string]bool{}
	for _, refusal := range refused {
		listed[refusal.cluster] = true
	}
	for _, wanted := range entries {
		listed[wanted.cluster] = true
		own := origin
		own.Cluster = wanted.cluster
		free, fault := owner(config, beside, wanted, own)
		if fault != "" {
			out.refused = append(out.refused, refusal{wanted.cluster, fault})
			continue
		}
		if free {
			out.changes = append(out.changes, change{after: wanted})
			continue
		}
		before := fromFile(config, wanted.Name)
		next := change{before: &before, after: wanted, kept: kept(config.AuthInfos[wanted.Name], wanted), otherCA: !ofCA(config, wanted.Name, origin)}
		if context := config.Contexts[wanted.Name]; context != nil && context.AuthInfo != wanted.Name {
			next.user = context.AuthInfo
		}
		// A program of the entry takes the place of the user that the person has set.
		if before.same(wanted) && !next.otherCA && (next.user == "" || wanted.exec() == nil) {
			out.same = append(out.same, wanted)
		} else {
			out.changes = append(out.changes, next)
		}
	}
	if complete {
		for name, context := range config.Contexts {
			is, ours := marked(context.Extensions)
			if !ours || !is.sameRegistry(origin) || is.Scope != origin.Scope {
				continue
			}
			out.scope++
			if !listed[is.Cluster] {
				out.pruned = append(out.pruned, name)
			}
		}
		slices.Sort(out.pruned)
	}
	return out
}

// sameRegistry reports whether two marks are of one registry. An address is not
// enough: two registries through tunnels have that of this computer.
func (m mark) sameRegistry(other mark) bool {
	return m.Registry == other.Registry && m.CA == other.CA
}

// ofCA reports whether all that a kubeconfig has under a name was marked by a registry
// with the CA of a mark.
func ofCA(config *clientcmdapi.Config, name string, origin mark) bool {
	for _, found := range kinds(config, name) {
		if is, ours := marked(found.extensions); ours && is.CA != origin.CA {
			return false
		}
	}
	return true
}

// asks reports whether a person has to agree: to each place that they are led to, and
// to the loss of most entries, which may mean that the registry is empty by mistake or
// another one.
func (p plan) asks() bool {
	return len(p.changes) > 0 || 2*len(p.pruned) > p.scope
}

// apply does to a kubeconfig what a plan says. The current context, and whatever has
// another origin, stays.
func (p plan) apply(config *clientcmdapi.Config, origin mark) error {
	put := func(e entry) error {
		own := origin
		own.Cluster = e.cluster
		extensions, err := own.object()
		if err != nil {
			return err
		}
		cluster := &clientcmdapi.Cluster{Server: e.Server, CertificateAuthorityData: e.CA, TLSServerName: e.TLSServerName, ProxyURL: e.Proxy, Extensions: extensions}
		if set := config.Clusters[e.Name]; set != nil {
			cluster.DisableCompression = set.DisableCompression // the person's own choice, which leads nowhere
		}
		config.Clusters[e.Name] = cluster
		before := config.Contexts[e.Name]
		context := &clientcmdapi.Context{Cluster: e.Name, Extensions: maps.Clone(extensions)}
		if before != nil {
			context.Namespace = before.Namespace // the person's own choice
		}
		if exec := e.exec(); exec != nil {
			context.AuthInfo = e.Name
			user := &clientcmdapi.AuthInfo{Exec: exec, Extensions: maps.Clone(extensions)}
			if set := config.AuthInfos[e.Name]; set != nil { // as whom a person acts is their own choice
				user.Impersonate, user.ImpersonateUID, user.ImpersonateGroups, user.ImpersonateUserExtra = set.Impersonate, set.ImpersonateUID, set.ImpersonateGroups, set.ImpersonateUserExtra
				if set.Exec != nil && set.Exec.Command == exec.Command {
					exec.Env = set.Exec.Env // entries have none, so these are the person's
				}
			}
			config.AuthInfos[e.Name] = user
		} else {
			delete(config.AuthInfos, e.Name)
			if before != nil && before.AuthInfo != e.Name {
				context.AuthInfo = before.AuthInfo // one that the person has set
			}
		}
		config.Contexts[e.Name] = context
		return nil
	}
	for _, change := range p.changes {
		if err := put(change.after); err != nil {
			return err
		}
	}
	for _, same := range p.same {
		// The scope that an entry was last chosen by is the one that prunes it.
		if err := put(same); err != nil {
			return err
		}
	}
	for _, name := range p.pruned {
		delete(config.Contexts, name)
		if cluster := config.Clusters[name]; cluster != nil && owned(cluster.Extensions, origin) {
			delete(config.Clusters, name)
		}
		if user := config.AuthInfos[name]; user != nil && owned(user.Extensions, origin) {
			delete(config.AuthInfos, name)
		}
	}
	return nil
}

func owned(extensions map[string]runtime.Object, origin mark) bool {
	found, ours := marked(extensions)
	return ours && found.sameRegistry(origin)
}

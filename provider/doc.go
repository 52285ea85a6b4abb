// Package provider gives the clusters of a cluster registry to the controllers of a program,
// through sigs.k8s.io/multicluster-runtime: each cluster that is available is engaged under
// the name of its Cluster, and reconcilers get its client and cache by that name.
//
// A cluster is engaged when
//   - its Cluster matches Options.Selector and is not being deleted,
//   - its condition IdentityVerified is not False,
//   - it has an endpoint for this client (v1beta1.ClusterSpec.EndpointFor), and an entry of
//     access with the audience Controller for which Options.Plugins has a plugin,
//   - its condition Available is True, was observed of the spec as it is now, and clusters are
//     probed at all, as far as Options.Probed says,
//   - and its API server answers, and the kinds that controllers watch were read from it.
//
// It stays engaged while the first three hold and neither the endpoint, the entry of access
// nor spec.id changes. So a cluster that is down for a while keeps its caches, which catch up
// once it is back, and a registry that is down changes nothing. When one of them changes, it
// is disengaged, and engaged again when all conditions hold of what is there now.
//
// An entry alone does not say how old it is: its controller writes nothing while nothing changes,
// and one that is dead writes nothing either. Set Options.Probed, or what was available once is
// taken for available as long as its entry is there. That is no danger to a cluster, because each
// is asked before it is engaged, but says nothing of one that is engaged, nor of one that was down
// when its controller died.
//
// No cluster waits for another one: each is engaged separately, and is tried again, less and
// less often, when that fails.
//
// Whoever may write a Cluster chooses an address, a CA and pointers to credentials. None of it
// names a program that is run: plugins are the caller's, and are chosen by the name or type of
// an entry. But they hand credentials to the address that the entry has. Have changes of
// addresses need a permission of their own (spec.server.authorization.guardedFields: Enforce
// of the registry), and take plugins whose credentials are good for one cluster alone.
package provider

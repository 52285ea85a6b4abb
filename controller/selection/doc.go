// Package selection acts on the ClusterSelections in namespaces of the host cluster: it selects
// clusters of the registry, and writes the decisions to the status and to PlacementDecisions
// (multicluster.x-k8s.io/v1alpha1, KEP-5313), in slices.
//
// A namespace is acted on while it is open to the registry by its label. Its selections choose
// among the clusters that the [Target] lets it see, and expressions are evaluated for no other
// one: by these, whoever writes a selection can find out all that they are evaluated for.
//
// Package decide decides, without I/O. The decisions in the status are also what the next one
// is based on: they are written before the PlacementDecisions, and a controller that takes over
// continues from them. While the registry can't be watched, no decision changes.
package selection

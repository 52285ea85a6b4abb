// Package clusterprofile publishes the clusters of a registry as ClusterProfiles
// (multicluster.x-k8s.io/v1alpha1, KEP-4322) in namespaces of the host cluster, for
// programs that read those.
//
// A profile follows from the entry of its cluster, and from whether its endpoint has shown
// a certificate that the entry's CA has signed, or a public one where the entry has none: no
// one is led elsewhere. It is written when
// that changes, once in [Period] at most, and never on a heartbeat: consumers connect again
// at each event. A profile belongs here by its cluster manager and by the label that names
// the registry; any other one is neither changed nor deleted.
//
// Nothing is written into a namespace that lacks the label by which an administrator has
// opened it to the registry, and no profile is deleted because the registry was not read:
// see [Controller] and the deletions that are held.
package clusterprofile

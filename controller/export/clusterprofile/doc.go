// Package clusterprofile makes the ClusterProfiles of clusters (multicluster.x-k8s.io/v1alpha1,
// KEP-4322), for programs that read those.
//
// A profile follows from the entry of its cluster, and from whether its endpoint has shown
// a certificate that the entry's CA has signed, or a public one where the entry has none: no
// one is led elsewhere. Consumers connect again at each event, so that heartbeats change
// nothing in it. A profile belongs to a registry by its cluster manager and by the label that
// names the registry.
package clusterprofile

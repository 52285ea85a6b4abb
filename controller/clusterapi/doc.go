// Package clusterapi brings the clusters of Cluster API in the host cluster into the
// registry: an entry for each Cluster of cluster.x-k8s.io/v1beta2 that is selected, with
// its address, its version, its labels as far as they are allowed, and what Cluster API
// reports of it.
//
// An entry belongs to this package when its manager is [Manager] and its sourceRef names a
// Cluster by namespace, name and UID. An entry that isn't, is never written to, unless a
// person asks for that by [AdoptAnnotation]. All state is in the entries and in the
// objects of Cluster API: whoever leads next continues from there. Those objects are only
// read: they get no finalizer, and no Secret is read.
//
// A Cluster is gone only when a namespace that may be read has none of its UID, and Cluster
// API is there to say so. What merely can't be read says nothing of any entry.
package clusterapi

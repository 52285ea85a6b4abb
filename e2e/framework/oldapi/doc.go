// Package oldapi has both ends of the API of cluster-registry v0.0.4, the last release that
// was an aggregated API server: a server that answers as it did, for what moves clusters
// out of it, and a client that asks as those of 2018 did, for registries that are to serve
// such clients still. Written after the sources of
// https://github.com/kubernetes-retired/cluster-registry, of its swagger.json, and of
// k8s.io/apiserver of Kubernetes 1.9, on which it stood.
package oldapi

// Package shipping tells the stories of how the operator comes to a host, without
// OLM: as one file for kubectl, with Helm, as a kustomize base at a URL, from a mirror of
// images, and once more after somebody deleted it with all registries.
//
// The commands and files are those of the documents. They replace the operator
// of the cluster, so they run one after the other, and each leaves it as it was.
package shipping

// Package clusterregistry holds the internal form of the registry's API, the
// hub that every served version converts to and from. Only the API server uses
// it; clients use a version's package.
//
// +k8s:deepcopy-gen=package
// +groupName=clusterregistry.k8s.io
package clusterregistry

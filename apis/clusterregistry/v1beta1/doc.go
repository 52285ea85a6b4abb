// Package v1beta1 is the modern form of the registry's API: who a cluster is,
// where it is, how to sign in to it, and what controllers report of it.
//
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.k8s.clusterregistry.v1beta1
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/clusterregistry/operator/apis/clusterregistry
// +k8s:protobuf-gen=package
// +groupName=clusterregistry.k8s.io
package v1beta1

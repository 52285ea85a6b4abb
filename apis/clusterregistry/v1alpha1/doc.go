// Package v1alpha1 is the first version of the registry's API. On the wire, in
// JSON and in protobuf, it is what cluster-registry v0.0.4 served, with a
// status that has content.
//
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.k8s.clusterregistry.v1alpha1
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/clusterregistry/operator/apis/clusterregistry
// +k8s:protobuf-gen=package
// +groupName=clusterregistry.k8s.io
package v1alpha1

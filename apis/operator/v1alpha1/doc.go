// Package v1alpha1 is the first version of the operator's API: a
// ClusterRegistry says which registry should run, and the operator makes it so.
//
// The comments of fields are what "kubectl explain" shows. What the markers
// refuse is refused when an object is applied, with a sentence that says what
// to do.
//
// +k8s:deepcopy-gen=package
// +groupName=operator.clusterregistry.io
package v1alpha1

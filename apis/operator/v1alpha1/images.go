package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Images says where the container images of a registry come from.
type Images struct {
	// repository is where every image is pulled from, without a tag, such as
	// registry.example/platform/clusterregistry: the images' own names and tags
	// are added to it. Default: where the operator's release publishes them.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$')",message="write a registry's host and a path without scheme, tag and final slash, such as registry.example/platform"
	// +operator-sdk:csv:customresourcedefinitions:displayName="Image repository",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Repository string `json:"repository,omitempty"`

	// pullSecrets are Secrets of the registry's namespace that let the images be
	// pulled. At most 16. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	PullSecrets []LocalObjectReference `json:"pullSecrets,omitempty"`

	// pullPolicy says when a node pulls an image: Always, IfNotPresent or Never.
	// Default: IfNotPresent.
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`
}

// LocalObjectReference names an object in the registry's namespace.
type LocalObjectReference struct {
	// name is the object's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

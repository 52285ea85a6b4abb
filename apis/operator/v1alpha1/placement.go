package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Placement says on which nodes pods may run.
type Placement struct {
	// nodeSelector names the labels that a node must have. At most 16.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations are the taints that the pods tolerate. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// topologySpreadConstraints replace the operator's own, which spread the
	// pods over nodes. A constraint without a labelSelector is about the pods of
	// this workload. At most 8.
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=8
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is the PriorityClass of the pods. Default: the cluster's.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// Resources are the requests and limits of a container.
//
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || self.requests.all(k, !(k in self.limits) || quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) <= 0)",message="a request is greater than its limit: raise the limit or lower the request"
type Resources struct {
	// requests are what a container is guaranteed to get, such as cpu: 100m and
	// memory: 128Mi. They replace all default requests: give those of memory and
	// cpu together.
	// +optional
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, isQuantity(string(self[k])) && quantity(string(self[k])).isGreaterThan(quantity('0')))",message="each request is a quantity above zero, such as cpu: 100m or memory: 128Mi"
	Requests map[corev1.ResourceName]resource.Quantity `json:"requests,omitempty"`

	// limits are what a container may use at most. They replace all default limits.
	// +optional
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, isQuantity(string(self[k])) && quantity(string(self[k])).isGreaterThan(quantity('0')))",message="each limit is a quantity above zero, such as cpu: 500m or memory: 512Mi"
	Limits map[corev1.ResourceName]resource.Quantity `json:"limits,omitempty"`
}

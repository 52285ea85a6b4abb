package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Pods is what a user may say of the pods of a component: where they run, and what the
// platform asks of pods. What the operator itself says of them can't be weakened: they run as
// an ordinary user without privileges, and on Linux nodes of an architecture that the images
// are built for.
type Pods struct {
	// podLabels are added to the pods, such as cost-center: "42" if a policy of the cluster
	// requires it. At most 16, and none that the operator or Kubernetes sets: those of
	// operator.clusterregistry.io, app.kubernetes.io, apps.kubernetes.io, batch.kubernetes.io
	// and statefulset.kubernetes.io. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.matches('^((operator[.]clusterregistry|(apps?|batch|statefulset)[.]kubernetes)[.]io/|(pod-template-hash|controller-revision-hash|controller-uid|job-name)$)'))",message="the operator and Kubernetes find pods by labels of operator.clusterregistry.io, app.kubernetes.io, apps.kubernetes.io, batch.kubernetes.io and statefulset.kubernetes.io: choose another label"
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`

	// podAnnotations are added to the pods, such as sidecar.istio.io/inject: "false". At most
	// 16, and none of operator.clusterregistry.io. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('operator.clusterregistry.io/'))",message="annotations of operator.clusterregistry.io are the operator's own: leave them out"
	PodAnnotations map[string]AnnotationValue `json:"podAnnotations,omitempty"`

	// nodeSelector names the labels that a node must have, such as pool: system. At most 16.
	// Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// affinity is that of the pods: see "kubectl explain pod.spec.affinity". The operator adds
	// that nodes run Linux on an architecture of the images. Default: none.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// tolerations are those of the pods: see "kubectl explain pod.spec.tolerations". At most 16.
	// Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// topologySpreadConstraints replace the operator's own, which spread the pods over nodes:
	// see "kubectl explain pod.spec.topologySpreadConstraints". A constraint without a
	// labelSelector applies to the pods of this workload. At most 8. Default: the operator's own.
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=8
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is the PriorityClass of the pods, such as system-cluster-critical.
	// Default: the cluster's.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// runtimeClassName is the RuntimeClass with which nodes run the pods, such as gvisor.
	// Default: the nodes' own.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RuntimeClassName string `json:"runtimeClassName,omitempty"`

	// dnsConfig is added to the DNS configuration that the pods get from the cluster: see
	// "kubectl explain pod.spec.dnsConfig". Default: none.
	// +optional
	DNSConfig *corev1.PodDNSConfig `json:"dnsConfig,omitempty"`

	// podSecurityContext sets the user of the pods. Default: user and groups 65532, or those of
	// the platform, as on OpenShift.
	// +optional
	PodSecurityContext *PodSecurityContext `json:"podSecurityContext,omitempty"`
}

// PodSecurityContext says as which user pods run. They never run as root.
//
// +kubebuilder:validation:MinProperties=1
type PodSecurityContext struct {
	// runAsUser is the ID of the user, 1 to 4294967294. Default: 65532, or the platform's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967294
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// runAsGroup is the ID of the user's group, 1 to 4294967294. Default: 65532, or the
	// platform's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967294
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// fsGroup is the ID of the group that owns the volumes, 1 to 4294967294. Default: 65532,
	// or the platform's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4294967294
	FSGroup *int64 `json:"fsGroup,omitempty"`

	// supplementalGroups are IDs of further groups, as the owners of shared storage. At most
	// 16. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=4294967294
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty"`

	// seLinuxOptions are the SELinux labels of the pods: see "kubectl explain
	// pod.spec.securityContext.seLinuxOptions". Default: those that the node chooses.
	// +optional
	SELinuxOptions *corev1.SELinuxOptions `json:"seLinuxOptions,omitempty"`
}

// AnnotationValue is the value of an annotation.
//
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// Jobs says how the pods of Jobs are made: those that save, verify, prune and remove backups,
// that look up a backup to be restored, and that take a snapshot before an upgrade. Each of
// nodeSelector, affinity, tolerations, priorityClassName, runtimeClassName and podSecurityContext
// that it leaves out is as in spec.etcd, as a whole; of affinity, that for nodes alone.
type Jobs struct {
	// resources are the requests and limits of each container of a Job. Default: requests of 10m
	// to 50m of CPU and 16Mi to 128Mi of memory, and limits of 64Mi to 2Gi of memory, by what
	// the container does.
	// +optional
	Resources Resources `json:"resources,omitempty,omitzero"`

	Pods `json:",inline"`

	// scratch is the volume in which a backup or a snapshot is assembled before it is stored. It
	// holds three copies of etcd's data. A Job that fails is tried up to four times, and keeps
	// the volume of each try until it is removed. Default: that much of the
	// node's own disk, which is not reserved.
	// +optional
	Scratch *Scratch `json:"scratch,omitempty"`
}

// Scratch is a volume that is made for each pod of a Job, and removed with the Job.
type Scratch struct {
	// storageClassName is the StorageClass of the volume. Default: the cluster's.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`
}

// Resources are the requests and limits of a container.
//
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || self.requests.all(k, !(k in self.limits) || quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) <= 0)",message="a request is greater than its limit: raise the limit or lower the request"
type Resources struct {
	// requests are what a container is guaranteed to get, such as cpu: 100m and
	// memory: 128Mi. They replace all default requests: give those of memory and
	// cpu together. At most 4. Default: those of the component.
	// +optional
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, isQuantity(string(self[k])) && quantity(string(self[k])).isGreaterThan(quantity('0')))",message="each request is a quantity above zero, such as cpu: 100m or memory: 128Mi"
	Requests map[corev1.ResourceName]resource.Quantity `json:"requests,omitempty"`

	// limits are what a container may use at most. They replace all default limits.
	// At most 4. Default: those of the component.
	// +optional
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, isQuantity(string(self[k])) && quantity(string(self[k])).isGreaterThan(quantity('0')))",message="each limit is a quantity above zero, such as cpu: 500m or memory: 512Mi"
	Limits map[corev1.ResourceName]resource.Quantity `json:"limits,omitempty"`
}

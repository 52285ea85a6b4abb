package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Server is the registry's API server.
type Server struct {
	// replicas is how many servers run, 1 to 16. They are stateless and
	// share the load. Default: 2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	// +operator-sdk:csv:customresourcedefinitions:displayName="API servers",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas int32 `json:"replicas,omitempty"`

	// resources are the requests and limits of each server. Default: enough for 100,000
	// clusters.
	// +optional
	Resources Resources `json:"resources,omitempty,omitzero"`

	Pods `json:",inline"`

	// service configures how clients outside of the host cluster reach the registry. Independent
	// mode only. Default: type ClusterIP, for clients in the host cluster.
	// +optional
	Service *Service `json:"service,omitempty"`

	// extraArgs are flags of the server, without dashes. These 7 can be set: v,
	// vmodule, max-requests-inflight, max-mutating-requests-inflight,
	// request-timeout, min-request-timeout and watch-cache-sizes. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=7
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['v', 'vmodule', 'max-requests-inflight', 'max-mutating-requests-inflight', 'request-timeout', 'min-request-timeout', 'watch-cache-sizes'])",message="only these flags can be set, written without dashes: v, vmodule, max-requests-inflight, max-mutating-requests-inflight, request-timeout, min-request-timeout, watch-cache-sizes"
	// +kubebuilder:validation:XValidation:rule="['v', 'max-requests-inflight', 'max-mutating-requests-inflight', 'min-request-timeout'].all(k, !(k in self) || self[k].matches('^[0-9]{1,6}$'))",message="v, max-requests-inflight, max-mutating-requests-inflight and min-request-timeout (seconds) are whole numbers, in quotes: \"4\""
	// +kubebuilder:validation:XValidation:rule="!('request-timeout' in self) || self['request-timeout'].matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$')",message="request-timeout is a duration such as 1m or 90s"
	// +kubebuilder:validation:XValidation:rule="!('vmodule' in self) || self['vmodule'].matches('^[^=, ]+=[0-9]{1,2}(,[^=, ]+=[0-9]{1,2})*$')",message="vmodule is a list of file patterns and levels, such as store=4,retry*=2"
	// +kubebuilder:validation:XValidation:rule="!('watch-cache-sizes' in self) || self['watch-cache-sizes'].matches('^[a-z][-a-z0-9.]*#[0-9]{1,6}(,[a-z][-a-z0-9.]*#[0-9]{1,6})*$')",message="watch-cache-sizes is a list of resources and sizes, such as clusters.clusterregistry.k8s.io#1000"
	ExtraArgs map[string]Argument `json:"extraArgs,omitempty"`

	// progressDeadlineSeconds is how long a rollout of the servers may stall before it counts as
	// failed: an upgrade is then rolled back to the previous release, if that can read what the
	// new one stores. 30 to 86400.
	// Default: 600.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=86400
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`

	// authentication configures JWT authentication. Client certificates of the
	// registry's own CA are always accepted. Independent mode only.
	// Default: none, and no JWT is accepted.
	// +optional
	Authentication *Authentication `json:"authentication,omitempty"`

	// authorization configures who decides what users may do, and what needs a separate
	// permission. Default: that of each field.
	// +optional
	Authorization *Authorization `json:"authorization,omitempty"`

	// encryption makes the servers encrypt the clusters that they store in etcd. Not with an
	// external etcd. Default: they are not encrypted.
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`

	// audit makes the servers record requests. Default: they record nothing; the host cluster's
	// audit log has the requests that go through it.
	// +optional
	Audit *Audit `json:"audit,omitempty"`
}

// Argument is the value of a flag.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
type Argument string

// Service says how an independent registry is reached from outside.
//
// +kubebuilder:validation:XValidation:rule="!has(self.nodePort) || self.type != 'ClusterIP'",fieldPath=".nodePort",message="a Service of type ClusterIP has no nodePort: use type NodePort or LoadBalancer, or remove nodePort"
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerClass) || self.type == 'LoadBalancer'",fieldPath=".loadBalancerClass",message="only a Service of type LoadBalancer has a loadBalancerClass: set type to LoadBalancer, or remove loadBalancerClass"
// +kubebuilder:validation:XValidation:rule="self.type != 'LoadBalancer' || oldSelf.type != 'LoadBalancer' || has(self.loadBalancerClass) == has(oldSelf.loadBalancerClass) && (!has(self.loadBalancerClass) || self.loadBalancerClass == oldSelf.loadBalancerClass)",fieldPath=".loadBalancerClass",message="Kubernetes does not change the class of a Service's load balancer: set type to ClusterIP first, and then to LoadBalancer with the other class"
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || !has(oldSelf.ipFamilies) || self.ipFamilies[0] == oldSelf.ipFamilies[0]",fieldPath=".ipFamilies",message="Kubernetes does not change the first address family of a Service: leave it first, and add or remove the second one"
// +kubebuilder:validation:XValidation:rule="!has(self.externalTrafficPolicy) || self.externalTrafficPolicy != 'Local' || self.type != 'NodePort' || has(self.hostnames)",fieldPath=".externalTrafficPolicy",message="with Local, only nodes that run a server answer at the node port, and these change: name hostnames that lead to such nodes, or use Cluster"
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerSourceRanges) || self.type == 'LoadBalancer'",fieldPath=".loadBalancerSourceRanges",message="only a Service of type LoadBalancer has loadBalancerSourceRanges: set type to LoadBalancer, or remove loadBalancerSourceRanges"
// +kubebuilder:validation:XValidation:rule="!has(self.externalTrafficPolicy) || self.type != 'ClusterIP'",fieldPath=".externalTrafficPolicy",message="a Service of type ClusterIP has no externalTrafficPolicy: use type NodePort or LoadBalancer, or remove externalTrafficPolicy"
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || size(self.ipFamilies) < 2 || has(self.ipFamilyPolicy) && self.ipFamilyPolicy != 'SingleStack'",fieldPath=".ipFamilies",message="two address families need ipFamilyPolicy PreferDualStack or RequireDualStack: set that, or name one family"
type Service struct {
	// type is the type of the Service: ClusterIP for clients in the host cluster,
	// NodePort, or LoadBalancer. Default: ClusterIP.
	// +optional
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`

	// annotations are added to the Service, for the controller of its load
	// balancer. At most 32, and none of operator.clusterregistry.io. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('operator.clusterregistry.io/'))",message="annotations of operator.clusterregistry.io are the operator's own: leave them out"
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodePort is the Service's port on every node, 1 to 65535 and in the range of the host
	// cluster (most often 30000 to 32767). Default: one that is allocated, and kept.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	NodePort int32 `json:"nodePort,omitempty"`

	// loadBalancerClass is the class of the load balancer, such as service.k8s.aws/nlb. Type
	// LoadBalancer only, and it can't be changed while the type stays. Default: the cluster's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	LoadBalancerClass string `json:"loadBalancerClass,omitempty"`

	// loadBalancerSourceRanges are the address ranges from which the load balancer accepts
	// connections, such as 203.0.113.0/24. Type LoadBalancer only. At most 32. Default: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	LoadBalancerSourceRanges []CIDR `json:"loadBalancerSourceRanges,omitempty"`

	// externalTrafficPolicy is Local to serve connections from outside on the node that receives
	// them, so that the server sees the client's address, or Cluster for any node. Types
	// NodePort and LoadBalancer only. Default: Cluster.
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// ipFamilyPolicy is SingleStack, PreferDualStack or RequireDualStack. Default: SingleStack, in
	// the cluster's first address family.
	// +optional
	// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
	IPFamilyPolicy corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`

	// ipFamilies are the address families of the Service, the first one of which can't be
	// changed: IPv4, IPv6 or both, 2 at most. Default: by the cluster and ipFamilyPolicy.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=IPv4;IPv6
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty"`

	// hostnames are names or IP addresses that lead to the Service, without
	// ports. The server's certificate is valid for all, and the first is the
	// address in the kubeconfig and in status.endpoint. Default: the address of
	// the load balancer, of a node, or of the Service. At most 16.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	Hostnames []Hostname `json:"hostnames,omitempty"`
}

// Hostname is a DNS name or an IP address.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="isIP(self) || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="write a lowercase DNS name or an IP address, without scheme, port and wildcard, such as registry.example"
type Hostname string

// Authentication names issuers of tokens.
type Authentication struct {
	// configMapRef names the key of a ConfigMap with an
	// AuthenticationConfiguration of apiserver.config.k8s.io: JWT issuers, as
	// kube-apiserver reads them. Changes are followed.
	// +required
	ConfigMapRef ConfigMapKeySelector `json:"configMapRef"`
}

// ConfigMapKeySelector is a key of a ConfigMap in the registry's namespace.
type ConfigMapKeySelector struct {
	// name is the ConfigMap's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key is the key in it. Default: authentication.yaml.
	// +optional
	// +kubebuilder:default=authentication.yaml
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// Authorization says who decides, and on what.
//
// +kubebuilder:validation:XValidation:rule="has(self.webhookSecretRef) || has(self.guardedFields) || has(self.visibility) || has(self.visibilityApprovedFor) || has(self.hostDecision)",message="authorization changes nothing: add guardedFields, visibility, hostDecision or webhookSecretRef, such as guardedFields: Enforce, or remove authorization"
type Authorization struct {
	// webhookSecretRef names the key of a Secret with the kubeconfig of a server
	// that answers SubjectAccessReviews. It decides in place of the registry's own
	// ClusterRoles and ClusterRoleBindings. Independent mode only. Default: none.
	// +optional
	WebhookSecretRef *SecretKeySelector `json:"webhookSecretRef,omitempty"`

	// hostDecision says what happens to a request that the host cluster has authorized and
	// forwarded to the servers. With Auto, they accept that decision, unless the version of the
	// host cluster may forward requests that it has not fully decided on. With Never, they send
	// a SubjectAccessReview for each request. Aggregated mode only. Default: Auto.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Decision of the host cluster",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Auto","urn:alm:descriptor:com.tectonic.ui:select:Never"}
	HostDecision HostDecision `json:"hostDecision,omitempty"`

	// guardedFields says what happens to a write that changes endpoints or access of a cluster
	// without the permission to update clusters/endpoints, or its id, manager or sourceRef
	// without that to update clusters/identity. Enforce refuses it. Warn accepts it with a
	// warning that says what Enforce will refuse. With Off, the right to write a cluster is
	// enough. Default: Off.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Guarded fields",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Off","urn:alm:descriptor:com.tectonic.ui:select:Warn","urn:alm:descriptor:com.tectonic.ui:select:Enforce"}
	GuardedFields GuardedFields `json:"guardedFields,omitempty"`

	// visibility says which clusters users with permissions on clusters see and may change: All,
	// or with ClusterSets those in the ClusterSets for which they have the same verb on
	// clustersets/clusters. To go back to All, visibilityApprovedFor is required. Default: All.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Visibility",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:All","urn:alm:descriptor:com.tectonic.ui:select:ClusterSets"}
	Visibility Visibility `json:"visibility,omitempty"`

	// visibilityApprovedFor approves a change of visibility from ClusterSets to All, after which
	// everyone who may read clusters sees all of them. It is the ID in status.visibility.id;
	// another ID has no effect. Default: none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	VisibilityApprovedFor string `json:"visibilityApprovedFor,omitempty"`
}

// HostDecision is what the host cluster's decision on a request counts for.
//
// +kubebuilder:validation:Enum=Auto;Never
type HostDecision string

const (
	// HostDecisionAuto goes by it, unless it may be incomplete. It is the default.
	HostDecisionAuto HostDecision = "Auto"
	// HostDecisionNever has each request reviewed again.
	HostDecisionNever HostDecision = "Never"
)

// DecidedByHost returns what the host cluster's decision counts for.
func (s Server) DecidedByHost() HostDecision {
	if s.Authorization == nil || s.Authorization.HostDecision == "" {
		return HostDecisionAuto
	}
	return s.Authorization.HostDecision
}

// Visibility is which clusters users see.
//
// +kubebuilder:validation:Enum=All;ClusterSets
type Visibility string

const (
	// VisibilityAll shows all clusters to everyone who may read clusters. It is the default.
	VisibilityAll Visibility = "All"
	// VisibilityClusterSets shows the clusters of the ClusterSets that a user may read.
	VisibilityClusterSets Visibility = "ClusterSets"
)

// Visible returns which clusters users are to see.
func (s Server) Visible() Visibility {
	if s.Authorization == nil || s.Authorization.Visibility == "" {
		return VisibilityAll
	}
	return s.Authorization.Visibility
}

// ShowsAllFor returns the ID for which it is approved that all clusters are shown again,
// empty for none.
func (s Server) ShowsAllFor() string {
	if s.Authorization == nil {
		return ""
	}
	return s.Authorization.VisibilityApprovedFor
}

// VisibilityStatus says that the servers hide clusters.
type VisibilityStatus struct {
	// id is what spec.server.authorization.visibilityApprovedFor has to name, to have all
	// clusters shown to everyone again. It is another one each time that clusters begin to
	// be hidden.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
}

// GuardedFields is what happens to a write that changes guarded fields of a cluster
// without the permission for that.
//
// +kubebuilder:validation:Enum=Off;Warn;Enforce
type GuardedFields string

const (
	// GuardedFieldsOff asks for no permission. It is the default.
	GuardedFieldsOff GuardedFields = "Off"
	// GuardedFieldsWarn lets the write pass with a warning.
	GuardedFieldsWarn GuardedFields = "Warn"
	// GuardedFieldsEnforce refuses the write.
	GuardedFieldsEnforce GuardedFields = "Enforce"
)

// Guarded returns what happens to a write without the permission.
func (s Server) Guarded() GuardedFields {
	if s.Authorization == nil || s.Authorization.GuardedFields == "" {
		return GuardedFieldsOff
	}
	return s.Authorization.GuardedFields
}

// SecretKeySelector is a key of a Secret in the registry's namespace.
type SecretKeySelector struct {
	// name is the Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key is the key in it. Default: kubeconfig.
	// +optional
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

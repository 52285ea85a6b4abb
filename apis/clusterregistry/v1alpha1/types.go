package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Cluster is an entry of the registry: where a Kubernetes cluster is, which
// certificate authorities to trust for it and how to sign in to it. It holds
// pointers to credentials, never credentials.
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's standard metadata. The name is a DNS label of at
	// most 63 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is what is known of the cluster. No controller need act on it.
	// +optional
	Spec ClusterSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is what controllers report of the cluster. It is null when none
	// does, and it is written through the status subresource only.
	// +optional
	Status *ClusterStatus `json:"status" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterList is a list of clusters.
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the list's standard metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the clusters.
	Items []Cluster `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ClusterSpec is what is known of a cluster.
type ClusterSpec struct {
	// kubernetesApiEndpoints are the addresses of the cluster's API server and
	// the authorities that sign its certificate.
	// +optional
	KubernetesAPIEndpoints KubernetesAPIEndpoints `json:"kubernetesApiEndpoints,omitempty" protobuf:"bytes,1,opt,name=kubernetesApiEndpoints"`

	// authInfo says how clients get credentials for the cluster. It is public:
	// what looks like a private key, token or password is refused.
	// +optional
	AuthInfo AuthInfo `json:"authInfo,omitempty" protobuf:"bytes,2,opt,name=authInfo"`
}

// KubernetesAPIEndpoints are the addresses of one Kubernetes API server.
type KubernetesAPIEndpoints struct {
	// serverEndpoints are the server's addresses, each for the clients of a
	// range of addresses. At most 16, and no range twice; 0.0.0.0/0 and ::/0 with
	// one address are any client, and count as one.
	// +optional
	// +listType=atomic
	ServerEndpoints []ServerAddressByClientCIDR `json:"serverEndpoints,omitempty" protobuf:"bytes,1,rep,name=serverEndpoints"`

	// caBundle holds the certificate authorities that sign the server's
	// certificate, in PEM, base64 encoded in JSON and YAML. Certificates only,
	// at most 64 KiB. Empty means the client's own authorities.
	// +optional
	CABundle []byte `json:"caBundle,omitempty" protobuf:"bytes,2,opt,name=caBundle"`
}

// ServerAddressByClientCIDR is the address that clients of a range should use.
type ServerAddressByClientCIDR struct {
	// clientCIDR is the range of client addresses, in CIDR notation, IPv4 or
	// IPv6. A client uses the first entry that contains its own address. Empty
	// means any client; some clients of 2018 only understand 0.0.0.0/0 and ::/0.
	// +optional
	ClientCIDR string `json:"clientCIDR,omitempty" protobuf:"bytes,1,opt,name=clientCIDR"`

	// serverAddress is the API server's address for these clients: a host name,
	// host:port, an IP address, IP:port (IPv6 in brackets), or an https URL
	// without user, query and fragment. Prefer the URL: without a caBundle,
	// client-go speaks to a bare host without TLS. At most 2048 bytes.
	// +optional
	ServerAddress string `json:"serverAddress,omitempty" protobuf:"bytes,2,opt,name=serverAddress"`
}

// AuthInfo says how clients get credentials: OAuth2 endpoints and supported
// flows, the address of a Kerberos server, the name of a cloud provider's
// plugin. It holds no credential itself.
type AuthInfo struct {
	// providers are the ways to get credentials. At most 16, with unique names.
	// +optional
	// +listType=atomic
	Providers []AuthProviderConfig `json:"providers" protobuf:"bytes,1,rep,name=providers"`
}

// AuthProviderConfig is one way to get credentials, modelled after the
// auth-provider of a kubeconfig.
type AuthProviderConfig struct {
	// name is the name of this way. At most 253 bytes.
	// +optional
	Name string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`

	// type tells kinds of providers apart, so that clients find those that they
	// know.
	// +optional
	Type AuthProviderType `json:"type,omitempty" protobuf:"bytes,2,opt,name=type"`

	// config is what a client of this type needs to get credentials. Values
	// that look like credentials are refused: store where they can be had. At
	// most 64 entries, with keys of 253 and values of 88 KiB.
	// +optional
	Config map[string]string `json:"config,omitempty" protobuf:"bytes,3,rep,name=config"`
}

// AuthProviderType tells kinds of providers apart.
type AuthProviderType struct {
	// name is the name of the type. At most 253 bytes.
	// +optional
	Name string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
}

// ClusterStatus is what controllers report of a cluster.
type ClusterStatus struct {
	// conditions are observations of the cluster, such as Ready. At most 64.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,1,rep,name=conditions"`

	// version is what the cluster runs.
	// +optional
	Version ClusterVersion `json:"version,omitempty,omitzero" protobuf:"bytes,2,opt,name=version"`
}

// ClusterVersion is what a cluster runs.
type ClusterVersion struct {
	// kubernetes is the version of the cluster's API server, such as v1.37.1.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty" protobuf:"bytes,1,opt,name=kubernetes"`
}

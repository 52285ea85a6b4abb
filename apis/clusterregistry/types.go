package clusterregistry

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RemainderAnnotation holds, in etcd only, what the stored version of a cluster
// has no field for. Clients neither see nor set it.
const RemainderAnnotation = GroupName + "/remainder"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Cluster is an entry of the registry: where a Kubernetes cluster is and how to
// sign in to it.
type Cluster struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Spec is what is known of the cluster.
	Spec ClusterSpec
	// Status is what controllers report of the cluster; nil when none does.
	Status *ClusterStatus
	// Remainder is what a newer release keeps in RemainderAnnotation. To this
	// one it means nothing; every write carries it along as it is.
	Remainder string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterList is a list of clusters.
type ClusterList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Cluster
}

// ClusterSpec is what is known of a cluster.
type ClusterSpec struct {
	KubernetesAPIEndpoints KubernetesAPIEndpoints
	AuthInfo               AuthInfo
}

// KubernetesAPIEndpoints are the addresses of a cluster's API server.
type KubernetesAPIEndpoints struct {
	ServerEndpoints []ServerAddressByClientCIDR
	CABundle        []byte
}

// ServerAddressByClientCIDR is the address for clients in a range of addresses.
type ServerAddressByClientCIDR struct {
	// ClientCIDR is empty when any client may use the address.
	ClientCIDR    string
	ServerAddress string
}

// AuthInfo says how clients get credentials. It holds none itself.
type AuthInfo struct {
	Providers []AuthProviderConfig
}

// AuthProviderConfig is one way to get credentials.
type AuthProviderConfig struct {
	Name   string
	Type   AuthProviderType
	Config map[string]string
}

// AuthProviderType tells kinds of providers apart.
type AuthProviderType struct {
	Name string
}

// ClusterStatus is what controllers report of a cluster.
type ClusterStatus struct {
	Conditions []metav1.Condition
	Version    ClusterVersion
}

// ClusterVersion is what a cluster runs.
type ClusterVersion struct {
	// Kubernetes is the version of the cluster's API server, such as v1.37.1.
	Kubernetes string
}

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
	// Remainder is what a newer release keeps in RemainderAnnotation and this one
	// doesn't know: a JSON object, or empty. Every write carries it along.
	Remainder string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterList is a list of clusters.
type ClusterList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []Cluster
}

// ClusterSpec is what is known of a cluster. Where a cluster is and how to sign
// in to it is there in two forms, and each is complete: the one of v1alpha1,
// letter by letter, and the one of v1beta1. So no version loses anything.
// Package form makes one of the other, and keeps both when one is written.
type ClusterSpec struct {
	// KubernetesAPIEndpoints and AuthInfo are the form of v1alpha1.
	KubernetesAPIEndpoints KubernetesAPIEndpoints
	AuthInfo               AuthInfo

	// Endpoints and Access are the form of v1beta1.
	Endpoints []Endpoint
	Access    []Access

	DisplayName string
	ID          string
	// ClusterSet is the name of the ClusterSet that the cluster is in, or empty.
	ClusterSet string
	Taints     []Taint
	Heartbeat  *Heartbeat
	Manager    *Manager
	SourceRef  *SourceReference
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

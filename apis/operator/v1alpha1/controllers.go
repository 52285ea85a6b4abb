package v1alpha1

// Controllers says what acts on the content of a registry. A Deployment of its own,
// NAME-controller, runs the functions that are set, and none is as long as none is set.
// It has as many replicas as there are servers, two at most, of which one works.
//
// +kubebuilder:validation:XValidation:rule="has(self.health) || has(self.registerHost) || has(self.clusterAPI) || has(self.exports) || has(self.clusterSelections) || has(self.feed)",message="controllers turns no function on: add health, registerHost, clusterAPI, exports, clusterSelections or feed, such as health: {}, or remove controllers"
// +kubebuilder:validation:XValidation:rule="!has(self.exports) || self.exports.all(e, !has(e.selection) || has(self.clusterSelections) && e.namespace in self.clusterSelections.map(s, s.namespace))",fieldPath=".exports",message="an export has a selection in a namespace whose ClusterSelections are not acted on: add the namespace to controllers.clusterSelections, which says of which clusters they choose, or use selector"
type Controllers struct {
	// health reports in the conditions of every cluster whether it is reachable and available.
	// It connects to the addresses in the registry, without credentials. {} turns it on.
	// Default: off.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Health of clusters"
	Health *HealthController `json:"health,omitempty"`

	// registerHost registers the host cluster, and keeps its entry up to date. Default: off.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Register the host cluster"
	RegisterHost *RegisterHost `json:"registerHost,omitempty"`

	// clusterAPI keeps an entry of each cluster that Cluster API manages in the host
	// cluster. Default: off.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Clusters of Cluster API"
	ClusterAPI *ClusterAPI `json:"clusterAPI,omitempty"`

	// exports publish each cluster as an object in a namespace of the host cluster, for tools
	// that read those. Anyone who may read these objects there sees all of these clusters,
	// whatever spec.server.authorization.visibility says. At most 16. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=format
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:displayName="Exports"
	Exports []Export `json:"exports,omitempty"`

	// clusterSelections are namespaces of the host cluster whose ClusterSelections are acted
	// on, and of which clusters these choose. Anyone who may write ClusterSelections there
	// can find out all that is known of these clusters. At most 16. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +operator-sdk:csv:customresourcedefinitions:displayName="ClusterSelections"
	ClusterSelections []ClusterSelections `json:"clusterSelections,omitempty"`

	// feed answers programs that request the clusters of the registry over HTTPS, such as Flux and
	// Prometheus, each with those that its user may list. {} turns it on. Only in mode Aggregated.
	// Default: off.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:displayName="Feed"
	Feed *Feed `json:"feed,omitempty"`

	// resources are the requests and limits of each replica. Default: enough for 10,000
	// clusters.
	// +optional
	Resources Resources `json:"resources,omitempty,omitzero"`

	Pods `json:",inline"`
}

// Functions returns the names of the functions that are set, as the spec spells them,
// in the order of the fields.
func (c *Controllers) Functions() []string {
	var out []string
	for _, function := range []struct {
		name string
		on   bool
	}{
		{"health", c != nil && c.Health != nil}, {"registerHost", c != nil && c.RegisterHost != nil},
		{"clusterAPI", c != nil && c.ClusterAPI != nil}, {"exports", c != nil && len(c.Exports) > 0},
		{"clusterSelections", c != nil && len(c.ClusterSelections) > 0}, {"feed", c != nil && c.Feed != nil},
	} {
		if function.on {
			out = append(out, function.name)
		}
	}
	return out
}

// HealthController says how clusters are probed.
type HealthController struct {
	// periodSeconds is the time between two probes of a cluster, 5 to 3600 seconds. A
	// condition turns False after three failures in a row, and True again after two
	// successes. Default: 60.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=3600
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`

	// clientAddress is the IP address for which the endpoint of a cluster is chosen,
	// by the clientCIDRs of the entry. Default: that of the pod.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="write an IP address, without a port, such as 10.1.2.3"
	ClientAddress string `json:"clientAddress,omitempty"`

	// allowedCIDRs are ranges of the host cluster's Services and pods in which clusters may have
	// their API server: everything else there is refused, because anyone who can write an entry
	// could otherwise have the host cluster's own services probed. Loopback, link-local,
	// multicast and cloud metadata addresses are always refused; other addresses need no
	// permission. At most 32. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	AllowedCIDRs []CIDR `json:"allowedCIDRs,omitempty"`

	// hostCIDRs are ranges of the host cluster's Services and pods besides those that are
	// read from its ServiceCIDRs and from spec.podCIDRs of its nodes. Add those of pods
	// when a network plugin gives them addresses from elsewhere, as on EKS, and as Calico
	// and Cilium may: clusters that have their API server in a range that is not known
	// are probed there. Also holds for exports. At most 32. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	HostCIDRs []CIDR `json:"hostCIDRs,omitempty"`

	// allowedProxies are the HTTP proxies that clusters may be probed through, if their endpoint
	// names one in proxyURL; with any other proxyURL, a cluster is not probed. Anyone who can
	// write an entry can have these proxies connect to wherever they connect anyone. At most 32.
	// Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	AllowedProxies []ProxyURL `json:"allowedProxies,omitempty"`
}

// ProxyURL is the URL of an HTTP proxy.
//
// +kubebuilder:validation:MaxLength=300
// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https?://([a-zA-Z0-9._-]+|\\\\[[0-9a-fA-F:.]+\\\\])(:[0-9]{1,5})?/?$') && (!self.contains('[') || isIP(self.substring(self.indexOf('[') + 1, self.indexOf(']'))))",message="write the URL of an HTTP proxy, without user, path and query, such as http://proxy.example.com:3128"
type ProxyURL string

// CIDR is a range of IP addresses.
//
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="write a range of IP addresses as address/length, such as 10.96.0.0/12 or fd00:10:96::/112"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || cidr(self) == cidr(self).masked()",message="the address has bits set beyond the length of the range: write its first address, such as 10.96.0.0/12, or /32 (IPv6: /128) for a single address"
type CIDR string

// RegisterHost says how the host cluster is registered.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) || !has(self.caBundle)",message="caBundle belongs to url: add url, or remove caBundle to use the address and the CA in kube-public/cluster-info"
type RegisterHost struct {
	// name is the name of the entry, a DNS label. After a change, delete the previous entry: the
	// host cluster is not registered again before.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write a DNS label: lowercase letters, digits and dashes, neither beginning nor ending with a dash, such as management"
	Name string `json:"name"`

	// url is the address of the host cluster's API server for its clients. It is published once
	// a server answers there with a certificate of caBundle. Default: that in the ConfigMap
	// cluster-info of kube-public, with its CA; else none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https://[^/?#@ ]+(/[^?# ]*)?$')",message="write an https URL without user, query and fragment, such as https://api.example.com:6443"
	URL string `json:"url,omitempty"`

	// caBundle holds the CA certificates that sign the certificate of url, in PEM,
	// base64 encoded in JSON and YAML. At most 64 KiB. Default: the CAs that each client
	// trusts anyway.
	// +optional
	CABundle CABundle `json:"caBundle,omitempty"`
}

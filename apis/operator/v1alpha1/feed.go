package v1alpha1

// Feed says what answers have of a cluster besides its name, its ID and its ClusterSet. They never
// have any other text of its entry.
type Feed struct {
	// labels are the labels of a cluster that answers have: keys, or all keys with a prefix, such
	// as example.com/*. At most 32. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Labels []LabelPattern `json:"labels,omitempty"`

	// providers are the access providers by which programs sign in, and where their credentials
	// may go. Answers have the address and the CA of a cluster only if its entry has access for
	// controllers by one of them, and its address is at one of their hosts. At most 8. Default:
	// none, so that answers have no addresses.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Providers []FeedProvider `json:"providers,omitempty"`
}

// FeedProvider is an access provider by which programs sign in.
type FeedProvider struct {
	// name is the provider.type of an entry of access, or else its name. Anyone who can write
	// an entry chooses among these.
	// +required
	Name ProviderName `json:"name"`

	// hosts are where the credentials may go: names, all names below one, such as
	// *.clusters.example.com, and ranges of addresses, such as 10.8.0.0/16. List those where no
	// one but your platform runs a server. At most 16.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Hosts []HostPattern `json:"hosts"`

	// backstage is how Backstage signs in by this provider. Default: none, so that Backstage does
	// not connect to these clusters.
	// +optional
	Backstage *FeedBackstage `json:"backstage,omitempty"`
}

// FeedBackstage is how Backstage signs in to a cluster.
type FeedBackstage struct {
	// authProvider is the value of the annotation kubernetes.io/auth-provider, such as oidc.
	// +required
	AuthProvider FeedWord `json:"authProvider"`

	// oidcTokenProvider is the value of the annotation kubernetes.io/oidc-token-provider, such
	// as okta. Default: none.
	// +optional
	OIDCTokenProvider FeedWord `json:"oidcTokenProvider,omitempty"`
}

// FeedWord is a name that Backstage has for something.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$')",message="write a name that Backstage knows, such as oidc: letters, digits, dots, dashes and underscores"
type FeedWord string

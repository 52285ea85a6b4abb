package v1beta1

import "cmp"

// Endpoint is a way to reach a cluster's API server.
type Endpoint struct {
	// name tells the endpoint from the others: a DNS label of at most 63 characters.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// url is the address of the API server: an https URL without user, query and
	// fragment, of at most 2048 bytes. Empty means that it is not known yet.
	// +optional
	URL string `json:"url,omitempty" protobuf:"bytes,2,opt,name=url"`

	// clientCIDRs are the ranges of client addresses, IPv4 or IPv6, that the
	// endpoint is for. A client uses the endpoint with the longest range that
	// contains its own address. None means any client. At most 64, and no range
	// belongs to two endpoints.
	// +optional
	// +listType=atomic
	ClientCIDRs []string `json:"clientCIDRs,omitempty" protobuf:"bytes,3,rep,name=clientCIDRs"`

	// caBundle holds the certificate authorities that sign the server's
	// certificate, in PEM, base64 encoded in JSON and YAML. Certificates only,
	// at most 64 KiB. Empty means the client's own authorities.
	// +optional
	CABundle []byte `json:"caBundle,omitempty" protobuf:"bytes,4,opt,name=caBundle"`

	// tlsServerName is the name that the server's certificate must be for: an IP
	// address, or a DNS name of at most 253 characters. Empty means the host of the URL.
	// +optional
	TLSServerName string `json:"tlsServerName,omitempty" protobuf:"bytes,5,opt,name=tlsServerName"`

	// proxyURL is the proxy that leads to the endpoint: an http, https or socks5
	// URL without user, query and fragment, of at most 2048 bytes. Empty means none.
	// +optional
	ProxyURL string `json:"proxyURL,omitempty" protobuf:"bytes,6,opt,name=proxyURL"`
}

// Access is a way to get credentials for a cluster. Exactly one of exec, oidc,
// objectRef and provider is set.
type Access struct {
	// name tells this way from the others. At most 253 bytes.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// audience is who signs in this way.
	Audience AccessAudience `json:"audience" protobuf:"bytes,2,opt,name=audience,casttype=AccessAudience"`

	// exec is a program that prints credentials, as in a kubeconfig. Exactly one of
	// exec, oidc, objectRef and provider is set.
	// +optional
	Exec *ExecAccess `json:"exec,omitempty" protobuf:"bytes,3,opt,name=exec"`

	// oidc is an issuer of tokens that the cluster trusts. Exactly one of exec, oidc,
	// objectRef and provider is set.
	// +optional
	OIDC *OIDCAccess `json:"oidc,omitempty" protobuf:"bytes,4,opt,name=oidc"`

	// objectRef is an object that holds credentials, for those who may read it.
	// Exactly one of exec, oidc, objectRef and provider is set.
	// +optional
	ObjectRef *ObjectReference `json:"objectRef,omitempty" protobuf:"bytes,5,opt,name=objectRef"`

	// provider is a plugin for credentials, modelled after the auth-provider of a
	// kubeconfig. In v1alpha1 it is one of authInfo.providers. Exactly one of exec,
	// oidc, objectRef and provider is set.
	// +optional
	Provider *ProviderAccess `json:"provider,omitempty" protobuf:"bytes,6,opt,name=provider"`
}

// AccessAudience is who signs in to a cluster.
// +enum
type AccessAudience string

const (
	// AudienceUser are people.
	AudienceUser AccessAudience = "User"
	// AudienceController are programs.
	AudienceController AccessAudience = "Controller"
)

// ExecAccess is a program that prints credentials, as in a kubeconfig.
type ExecAccess struct {
	// apiVersion is the version of the ExecCredential that the program speaks, such
	// as client.authentication.k8s.io/v1. At most 253 bytes.
	APIVersion string `json:"apiVersion" protobuf:"bytes,1,opt,name=apiVersion"`

	// command is the program, such as kubelogin. At most 4096 bytes.
	Command string `json:"command" protobuf:"bytes,2,opt,name=command"`

	// args are the program's arguments. At most 64, of at most 88 KiB. None means that
	// the program has none.
	// +optional
	// +listType=atomic
	Args []string `json:"args,omitempty" protobuf:"bytes,3,rep,name=args"`

	// env are environment variables that the program gets besides the client's own.
	// At most 64, with values of at most 88 KiB. None means no others.
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	Env []ExecEnvVar `json:"env,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,4,rep,name=env"`

	// installHint tells people who lack the program how to get it. At most 4096
	// bytes. Empty means none.
	// +optional
	InstallHint string `json:"installHint,omitempty" protobuf:"bytes,5,opt,name=installHint"`

	// provideClusterInfo says whether the cluster is passed to the program. Default:
	// false.
	// +optional
	ProvideClusterInfo bool `json:"provideClusterInfo,omitempty" protobuf:"varint,6,opt,name=provideClusterInfo"`

	// interactiveMode says whether the program gets the standard input, to ask the
	// user: Never; IfAvailable, where it is a terminal that nothing else reads; or
	// Always, and the program is not run without one. Empty means IfAvailable: the
	// server stores what was written.
	// +optional
	InteractiveMode InteractiveMode `json:"interactiveMode,omitempty" protobuf:"bytes,7,opt,name=interactiveMode,casttype=InteractiveMode"`
}

// InteractiveMode is whether a program gets the standard input, as in a kubeconfig.
// +enum
type InteractiveMode string

const (
	// InteractiveNever never lets the program ask the user.
	InteractiveNever InteractiveMode = "Never"
	// InteractiveIfAvailable lets it ask where there is someone to ask.
	InteractiveIfAvailable InteractiveMode = "IfAvailable"
	// InteractiveAlways doesn't run it where there is no one.
	InteractiveAlways InteractiveMode = "Always"
)

// Interactive returns whether the program gets the standard input, with the default where
// the entry doesn't say. The server fills in nothing: a default in an entry of a list is a
// difference for ever to tools that compare lists as a whole.
func (e *ExecAccess) Interactive() InteractiveMode {
	return cmp.Or(e.InteractiveMode, InteractiveIfAvailable)
}

// ExecEnvVar is an environment variable.
type ExecEnvVar struct {
	// name is the variable's name. At most 253 bytes.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`

	// value is the variable's value. At most 88 KiB. What looks like a credential is
	// refused. Empty means an empty variable.
	// +optional
	Value string `json:"value,omitempty" protobuf:"bytes,2,opt,name=value"`
}

// OIDCAccess is an issuer of tokens.
type OIDCAccess struct {
	// issuerURL is the issuer: an https URL without user, query and fragment, of at
	// most 2048 bytes.
	IssuerURL string `json:"issuerURL" protobuf:"bytes,1,opt,name=issuerURL"`

	// clientID is whom the token must be for. At most 4096 bytes.
	ClientID string `json:"clientID" protobuf:"bytes,2,opt,name=clientID"`

	// scopes are what a client asks the issuer for besides openid. At most 64, of
	// at most 253 bytes. None means openid alone.
	// +optional
	// +listType=atomic
	Scopes []string `json:"scopes,omitempty" protobuf:"bytes,3,rep,name=scopes"`
}

// ObjectReference is an object that holds credentials.
type ObjectReference struct {
	// apiVersion is the group and version of the object, such as v1. At most 253
	// bytes. Empty means that the kind says enough.
	// +optional
	APIVersion string `json:"apiVersion,omitempty" protobuf:"bytes,1,opt,name=apiVersion"`

	// kind is the kind of the object, such as Secret. At most 253 bytes.
	Kind string `json:"kind" protobuf:"bytes,2,opt,name=kind"`

	// namespace is where the object is. At most 253 bytes. Empty means that its kind
	// has none.
	// +optional
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,3,opt,name=namespace"`

	// name is the name of the object. At most 253 bytes.
	Name string `json:"name" protobuf:"bytes,4,opt,name=name"`
}

// ProviderAccess is a plugin for credentials.
type ProviderAccess struct {
	// type tells kinds of plugins apart, so that clients find those that they know.
	// At most 253 bytes. Empty means that name tells them apart.
	// +optional
	Type string `json:"type,omitempty" protobuf:"bytes,1,opt,name=type"`

	// config is what the plugin needs to get credentials. Values that look like
	// credentials are refused: store where they can be had. At most 64 entries, with
	// keys of 253 bytes and values of 88 KiB. None means that the plugin gets the
	// name of the cluster.
	// +optional
	Config map[string]string `json:"config,omitempty" protobuf:"bytes,2,rep,name=config"`
}

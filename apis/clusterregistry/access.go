package clusterregistry

// Endpoint is a way to reach a cluster's API server.
type Endpoint struct {
	Name          string
	URL           string
	ClientCIDRs   []string
	CABundle      []byte
	TLSServerName string
	ProxyURL      string
}

// Access is a way to get credentials for a cluster. Exactly one of exec, oidc,
// objectRef and provider is set.
type Access struct {
	Name      string
	Audience  AccessAudience
	Exec      *ExecAccess
	OIDC      *OIDCAccess
	ObjectRef *ObjectReference
	Provider  *ProviderAccess
}

// AccessAudience is who signs in to a cluster.
type AccessAudience string

const (
	// AudienceUser are people.
	AudienceUser AccessAudience = "User"
	// AudienceController are programs.
	AudienceController AccessAudience = "Controller"
)

// ExecAccess is a program that prints credentials, as in a kubeconfig.
type ExecAccess struct {
	APIVersion         string
	Command            string
	Args               []string
	Env                []ExecEnvVar
	InstallHint        string
	ProvideClusterInfo bool
	InteractiveMode    InteractiveMode
}

// InteractiveMode is whether a program gets the standard input. Empty means
// InteractiveIfAvailable.
type InteractiveMode string

const (
	// InteractiveNever never lets the program ask the user.
	InteractiveNever InteractiveMode = "Never"
	// InteractiveIfAvailable lets it ask where there is someone to ask.
	InteractiveIfAvailable InteractiveMode = "IfAvailable"
	// InteractiveAlways doesn't run it where there is no one.
	InteractiveAlways InteractiveMode = "Always"
)

// ExecEnvVar is an environment variable.
type ExecEnvVar struct {
	Name  string
	Value string
}

// OIDCAccess is an issuer of tokens.
type OIDCAccess struct {
	IssuerURL string
	ClientID  string
	Scopes    []string
}

// ObjectReference is an object that holds credentials.
type ObjectReference struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
}

// ProviderAccess is a plugin for credentials.
type ProviderAccess struct {
	Type   string
	Config map[string]string
}

package v1alpha1

// AccessTemplate says how to sign in to the clusters of some namespaces, which Cluster API does
// not know. Of several templates for a Cluster the first counts, alone.
type AccessTemplate struct {
	// namespaces are those whose Clusters may get this, of clusterAPI.namespaces. Anyone who may
	// write a Cluster there chooses among the templates of its namespace. At most 32.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Namespaces []NamespaceName `json:"namespaces"`

	// matchLabels are labels that a Cluster must have. At most 4. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.size() <= 317)",message="the key of a label has 317 characters at most"
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// infrastructureKinds are the kinds of spec.infrastructureRef of a Cluster that the
	// template is for, such as AWSManagedCluster. At most 16. Default: any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	InfrastructureKinds []InfrastructureKind `json:"infrastructureKinds,omitempty"`

	// hosts are where the credentials may go: names, all names below one, such as
	// *.clusters.example.com, and ranges of addresses, such as 10.8.0.0/16. An entry with an
	// endpoint elsewhere gets no access, and its Cluster is held. List only hosts where no one
	// but your platform runs a server, at any port, because anyone who may write a Cluster
	// chooses the port and the CA: not the addresses of nodes, nor a domain where a cloud gives
	// names to all its customers. At most 16.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Hosts []HostPattern `json:"hosts"`

	// access are ways to authenticate to the cluster. Access of the same name that someone else
	// has added to an entry stays as it is. At most 4.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Access []TemplateAccess `json:"access"`
}

// NamespaceClusterSet says in which ClusterSet the entries of a namespace are.
type NamespaceClusterSet struct {
	// namespace is one of clusterAPI.namespaces.
	// +required
	Namespace NamespaceName `json:"namespace"`

	// clusterSet is the name of the ClusterSet, which must exist.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write the name of a ClusterSet, such as production"
	ClusterSet string `json:"clusterSet"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="write the value of a label: letters, digits, dashes, underscores and dots"
type LabelValue string

// InfrastructureKind is the kind of what Cluster API makes clusters of.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9]*$')",message="write the kind of spec.infrastructureRef, such as AWSManagedCluster"
type InfrastructureKind string

// HostPattern says which hosts are meant: one by its name, all below a name, or all with an
// address in a range.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.contains('/') || self.matches('^([*][.])?([a-z0-9]([-a-z0-9]*[a-z0-9])?[.])+[a-z]([-a-z0-9]*[a-z0-9])?$')",message="write a name in lowercase, such as api.example.com, all names below one of at least two parts, such as *.clusters.example.com, or a range of addresses, such as 10.8.0.0/16 (one address: 10.8.0.1/32)"
// +kubebuilder:validation:XValidation:rule="!self.contains('/') || isCIDR(self) && cidr(self) == cidr(self).masked() && cidr(self).prefixLength() >= 8",message="write a range as its first address and its length, of 8 at least, such as 10.8.0.0/16 or fd00:8::/32"
type HostPattern string

// TemplateAccess is a way to sign in to a cluster. It never holds a credential.
//
// +kubebuilder:validation:XValidation:rule="has(self.exec) != has(self.provider)",message="set exactly one of exec and provider"
type TemplateAccess struct {
	// name identifies the access. Clients of ClusterProfiles find their plugin by it, unless
	// provider.type is set.
	// +required
	Name ProviderName `json:"name"`

	// audience is who uses this: User or Controller. Default: Controller.
	// +optional
	Audience AccessAudience `json:"audience,omitempty"`

	// exec is a program that prints credentials, as in a kubeconfig.
	// +optional
	Exec *TemplateExec `json:"exec,omitempty"`

	// provider is a plugin for credentials.
	// +optional
	Provider *TemplateProvider `json:"provider,omitempty"`
}

// AccessAudience is who signs in to a cluster.
//
// +kubebuilder:validation:Enum=User;Controller
type AccessAudience string

// TemplateText is a text in which {namespace} and {name} stand for those of the Cluster, and
// {controlPlane} for the name of its spec.controlPlaneRef. Whoever may write the Cluster chooses
// the last two. A text with one of them must therefore have {namespace}, too, between characters
// that no such name has, so that no Cluster can be taken for one of another namespace. A text is
// at most 512 bytes long once it is filled in.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^([] !#-[^-z|~]|[{](name|namespace|controlPlane)[}])*$')",message="only {namespace}, {name} and {controlPlane} are known, and no other braces, quotation marks, backslashes, or characters that are not in ASCII"
// +kubebuilder:validation:XValidation:rule="!self.matches('[{](name|controlPlane)[}]') || self.matches('(^|[^-.A-Za-z0-9}])[{]namespace[}]($|[^-.A-Za-z0-9{])')",message="whoever may write a Cluster chooses {name} and {controlPlane}, and could name a cluster of another namespace: add {namespace}, set off by a character that no name has, such as {namespace}/{name} or {namespace}_{controlPlane}"
// +kubebuilder:validation:XValidation:rule="!self.contains('PRIVATE KEY-----') && !self.matches('eyJ[A-Za-z0-9_-]{5,}[.]eyJ|://[^/?#:@ ]*:[^/?#@ ]+@') && !self.matches('(?i)^-*[^=]*(pass[-_. ]?(word|wd|phrase|code)|passwd|token|jwt|bearer|cookie|secret|(secret|access|account|shared|api|private|signing|encryption|ssh)[-_. ]?key|key[-_. ]?data|auth|authorization)s?=.')",message="this looks like a credential, and many may read the registry: say where one is to be had instead"
type TemplateText string

// TemplateExec is a program that prints credentials.
type TemplateExec struct {
	// apiVersion is the version of the ExecCredential of the program. Default:
	// client.authentication.k8s.io/v1.
	// +optional
	// +kubebuilder:validation:Enum="client.authentication.k8s.io/v1";"client.authentication.k8s.io/v1beta1"
	APIVersion string `json:"apiVersion,omitempty"`

	// command is the program. Nothing of a Cluster is filled in here.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[]!#-[^-z|~]+$')",message="write the name or the path of a program, without spaces, quotation marks and backslashes. A Cluster does not choose it, so that it has no braces: put what depends on the Cluster in args, env or provider.config"
	Command string `json:"command"`

	// args are the program's arguments. At most 12. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=12
	Args []TemplateText `json:"args,omitempty"`

	// env are environment variables that the program gets in addition to the client's own. At
	// most 4. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	Env []TemplateVariable `json:"env,omitempty"`

	// installHint tells people who lack the program how to get it. Nothing of a Cluster is
	// filled in here. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[] !#-[^-z|~]*$')",message="write a sentence in ASCII, without braces, quotation marks and backslashes"
	InstallHint string `json:"installHint,omitempty"`

	// provideClusterInfo says whether the cluster is passed to the program. Default: false.
	// +optional
	ProvideClusterInfo bool `json:"provideClusterInfo,omitempty"`

	// interactiveMode says whether the program may ask the user: Never, IfAvailable where there
	// is a terminal, or Always. Default: IfAvailable.
	// +optional
	// +kubebuilder:validation:Enum=Never;IfAvailable;Always
	InteractiveMode string `json:"interactiveMode,omitempty"`
}

// TemplateVariable is an environment variable of a program.
//
// +kubebuilder:validation:XValidation:rule="!self.name.matches('(?i)(pass[-_. ]?(word|wd|phrase|code)|passwd|token|jwt|bearer|cookie|secret|key|key[-_. ]?data|auth|authorization)s?$')",message="this variable is for a credential, and many may read the registry: have the program find it in its own environment"
type TemplateVariable struct {
	// name is the variable's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="write the name of an environment variable, such as AWS_PROFILE"
	Name string `json:"name"`

	// value is the variable's value. Default: empty.
	// +optional
	Value TemplateText `json:"value,omitempty"`
}

// TemplateProvider is a plugin for credentials.
type TemplateProvider struct {
	// type is the kind of the plugin. Default: the name of the access.
	// +optional
	Type ProviderName `json:"type,omitempty"`

	// config is what the plugin needs to get credentials, with keys of at most 63 characters.
	// At most 8 entries. Default: the plugin gets the name of the cluster, as clusterName.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.size() <= 63)",message="a key of config has 63 characters at most"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !['assword', 'asswd', 'assphrase', 'asscode', 'oken', 'OKEN', 'ecret', 'ECRET', 'earer', 'ookie', 'rivateKey', 'rivate_key', 'rivate-key', 'ccessKey', 'ccess_key', 'ccess-key', 'piKey', 'pi_key', 'pi-key'].exists(end, key.endsWith(end)))",message="a key of config is for a credential, and many may read the registry: say where one is to be had, under a key such as secretRef"
	Config map[string]TemplateText `json:"config,omitempty"`
}

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterAPITemplate says what the entries of some Clusters have that Cluster API does not
// know. Of several templates for a Cluster the first counts, alone.
//
// +kubebuilder:validation:XValidation:rule="has(self.access) || has(self.clusterSet)",message="the template fills nothing in: add access or clusterSet, or remove it"
type ClusterAPITemplate struct {
	// selector selects Clusters by their labels and, where a Cluster has no label of a key,
	// by that of its namespace. Default: all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// infrastructureKinds are the kinds of spec.infrastructureRef of a Cluster that the
	// template is for, such as AWSManagedCluster. At most 16. Default: any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	InfrastructureKinds []InfrastructureKind `json:"infrastructureKinds,omitempty"`

	// clusterSet is the ClusterSet of entries that no one else has put in one. It must exist.
	// Default: none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write the name of a ClusterSet, such as production"
	ClusterSet string `json:"clusterSet,omitempty"`

	// access are ways to sign in to the cluster. One whose name an entry has already, from
	// someone else, is left as it is. At most 4.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Access []ClusterAPIAccess `json:"access,omitempty"`
}

// InfrastructureKind is the kind of what Cluster API makes clusters of.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9]*$')",message="write the kind of spec.infrastructureRef, such as AWSManagedCluster"
type InfrastructureKind string

// ClusterAPIAccess is a way to sign in to a cluster. It never holds a credential.
//
// +kubebuilder:validation:XValidation:rule="has(self.exec) != has(self.provider)",message="set exactly one of exec and provider"
type ClusterAPIAccess struct {
	// name tells this way from the others, and is what clients of ClusterProfiles find their
	// plugin by unless provider.type is set.
	// +required
	Name ProviderName `json:"name"`

	// audience is who signs in this way: User or Controller. Default: Controller.
	// +optional
	Audience ClusterAPIAudience `json:"audience,omitempty"`

	// exec is a program that prints credentials, as in a kubeconfig.
	// +optional
	Exec *ClusterAPIExec `json:"exec,omitempty"`

	// provider is a plugin for credentials.
	// +optional
	Provider *ClusterAPIProvider `json:"provider,omitempty"`
}

// ClusterAPIAudience is who signs in to a cluster.
//
// +kubebuilder:validation:Enum=User;Controller
type ClusterAPIAudience string

// TemplateText is a text in which these stand for what is known of a Cluster: {name} and
// {namespace}, {entry} for the name of the entry, {infrastructure} and {controlPlane} for the
// names of spec.infrastructureRef and spec.controlPlaneRef, and {label:KEY} for the label KEY
// of the Cluster or its namespace. Whoever may write the Cluster chooses these values: let
// none of them decide more than which cluster is meant.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^([^{}]|[{](name|namespace|entry|infrastructure|controlPlane|label:[A-Za-z0-9._/-]+)[}])*$')",message="only {name}, {namespace}, {entry}, {infrastructure}, {controlPlane} and {label:KEY} are known, and no other braces"
// +kubebuilder:validation:XValidation:rule="!self.contains('PRIVATE KEY-----') && !self.matches('eyJ[A-Za-z0-9_-]{5,}[.]eyJ|://[^/?#:@ ]*:[^/?#@ ]+@') && !self.matches('(?i)^-*[^=]*(pass[-_. ]?(word|wd|phrase|code)|passwd|token|jwt|bearer|cookie|secret|(secret|access|account|shared|api|private|signing|encryption|ssh)[-_. ]?key|key[-_. ]?data|auth|authorization)s?=.')",message="this looks like a credential, and many may read the registry: say where one is to be had instead"
type TemplateText string

// ClusterAPIExec is a program that prints credentials.
type ClusterAPIExec struct {
	// apiVersion is the version of the ExecCredential that the program speaks. Default:
	// client.authentication.k8s.io/v1.
	// +optional
	// +kubebuilder:validation:Enum="client.authentication.k8s.io/v1";"client.authentication.k8s.io/v1beta1"
	APIVersion string `json:"apiVersion,omitempty"`

	// command is the program. Nothing of a Cluster is filled in here.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.contains('{') && !self.contains('}')",message="a Cluster does not choose the program: write its name without braces, and put what depends on the Cluster in args, env or provider.config"
	Command string `json:"command"`

	// args are the program's arguments. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Args []TemplateText `json:"args,omitempty"`

	// env are environment variables that the program gets besides the client's own. At most 8.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Env []ClusterAPIEnvVar `json:"env,omitempty"`

	// installHint tells people who lack the program how to get it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	InstallHint string `json:"installHint,omitempty"`

	// provideClusterInfo says whether the cluster is passed to the program. Default: false.
	// +optional
	ProvideClusterInfo bool `json:"provideClusterInfo,omitempty"`

	// interactiveMode says whether the program may ask the user. Default: IfAvailable.
	// +optional
	// +kubebuilder:validation:Enum=Never;IfAvailable;Always
	InteractiveMode string `json:"interactiveMode,omitempty"`
}

// ClusterAPIEnvVar is an environment variable of a program.
//
// +kubebuilder:validation:XValidation:rule="!self.name.matches('(?i)(pass[-_. ]?(word|wd|phrase|code)|passwd|token|jwt|bearer|cookie|secret|key|key[-_. ]?data|auth|authorization)s?$')",message="this variable is for a credential, and many may read the registry: have the program find it in its own environment"
type ClusterAPIEnvVar struct {
	// name is the variable's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="write the name of an environment variable, such as AWS_PROFILE"
	Name string `json:"name"`

	// value is the variable's value.
	// +optional
	Value TemplateText `json:"value,omitempty"`
}

// ClusterAPIProvider is a plugin for credentials.
type ClusterAPIProvider struct {
	// type tells kinds of plugins apart. Default: the name of the way to sign in.
	// +optional
	Type ProviderName `json:"type,omitempty"`

	// config is what the plugin needs to get credentials. At most 16 entries. Default: the
	// plugin gets the name of the cluster, as clusterName.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(key, !['assword', 'asswd', 'assphrase', 'asscode', 'oken', 'OKEN', 'ecret', 'ECRET', 'earer', 'ookie', 'rivateKey', 'rivate_key', 'rivate-key', 'ccessKey', 'ccess_key', 'ccess-key', 'piKey', 'pi_key', 'pi-key'].exists(end, key.endsWith(end)))",message="a key of config is for a credential, and many may read the registry: say where one is to be had, under a key such as secretRef"
	Config map[string]TemplateText `json:"config,omitempty"`
}

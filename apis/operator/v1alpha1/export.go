package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExportFormat is what kind of object a cluster is published as.
//
// +kubebuilder:validation:Enum=ArgoCDSecret;ClusterProfile;FluxConfigMap;Kubeconfig
type ExportFormat string

const (
	// ExportArgoCDSecret is a Secret by which Argo CD knows a cluster, without credentials.
	ExportArgoCDSecret ExportFormat = "ArgoCDSecret"
	// ExportClusterProfile is a ClusterProfile (multicluster.x-k8s.io), which several tools read.
	ExportClusterProfile ExportFormat = "ClusterProfile"
	// ExportFluxConfigMap is a ConfigMap by which Flux connects without a stored credential.
	ExportFluxConfigMap ExportFormat = "FluxConfigMap"
	// ExportKubeconfig is a ConfigMap with a kubeconfig without credentials.
	ExportKubeconfig ExportFormat = "Kubeconfig"
)

// Export says which clusters are published in a namespace, and as what.
//
// +kubebuilder:validation:XValidation:rule="self.format == 'ClusterProfile' || !has(self.providers)",message="providers is for the format ClusterProfile, whose clients know what to run for each: list them in signIn instead, with what is run and where credentials may go"
// +kubebuilder:validation:XValidation:rule="self.format != 'ClusterProfile' || !has(self.signIn)",message="signIn is not for the format ClusterProfile, whose clients know what to run for each provider: list the providers in providers instead"
// +kubebuilder:validation:XValidation:rule="self.format == 'ClusterProfile' || has(self.signIn)",message="this format says how clients sign in: add signIn, with a provider, what is run for it, and the hosts where credentials may go"
// +kubebuilder:validation:XValidation:rule="!has(self.signIn) || self.format == 'FluxConfigMap' || self.signIn.all(s, !has(s.flux))",message="flux is for the format FluxConfigMap: set exec, or aws for ArgoCDSecret, in each of signIn"
// +kubebuilder:validation:XValidation:rule="!has(self.signIn) || self.format != 'FluxConfigMap' || self.signIn.all(s, has(s.flux))",message="Flux runs no program: set flux in each of signIn for the format FluxConfigMap"
// +kubebuilder:validation:XValidation:rule="!has(self.signIn) || self.format == 'ArgoCDSecret' || self.signIn.all(s, !has(s.aws))",message="aws is for the format ArgoCDSecret: set exec or flux in each of signIn"
// +kubebuilder:validation:XValidation:rule="self.format == 'ArgoCDSecret' || !has(self.project)",message="project is one of Argo CD, for the format ArgoCDSecret: remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !has(self.selection)",message="set selector or selection, not both: a ClusterSelection says itself which clusters it selects"
type Export struct {
	// namespace is a namespace of the host cluster. If it is not the registry's own, it needs
	// the label registry.clusterregistry.io/NAME with the registry's namespace as its value,
	// where NAME is the registry's name, and an administrator must have allowed the
	// registry's namespace to reach others (--aggregated-namespaces of the operator).
	// +required
	Namespace NamespaceName `json:"namespace"`

	// format is what each cluster is published as, without credentials: ClusterProfile
	// (multicluster.x-k8s.io); ArgoCDSecret, a cluster Secret of Argo CD; FluxConfigMap, for
	// spec.kubeConfig.configMapRef of Flux; or Kubeconfig, a ConfigMap with a kubeconfig. For
	// all but the first, the controller may read and write all Secrets, or all ConfigMaps, of
	// the namespace, which must not be the registry's own.
	// +required
	Format ExportFormat `json:"format"`

	// selector selects clusters of the registry by their labels. Default: all, or those of
	// selection.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// selection is the name of a ClusterSelection in the namespace of the export, such as gold: the
	// clusters that it selects are published, of those that clusterSelections, which must have
	// the namespace, lets it see. While there is no such ClusterSelection, or it is not Ready,
	// nothing new is published, and what is there stays. Default: none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write the name of a ClusterSelection, such as gold"
	Selection string `json:"selection,omitempty"`

	// labels are the labels of a cluster that its object gets: keys, or all keys with
	// a prefix, such as example.com/*. At most 32. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Labels []LabelPattern `json:"labels,omitempty"`

	// providers are the names of the access providers that may be published there: the
	// provider.type of an entry of access, or else its name. Anyone who can write an entry
	// chooses among these which program of a client gets credentials for the entry's
	// address: list those for which clients have a plugin whose credentials are good for
	// one cluster alone. At most 32. Default: none, so that profiles have no access.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Providers []ProviderName `json:"providers,omitempty"`

	// signIn is what clients run to sign in to a cluster that has access by a provider, for
	// formats that say so. The first access of an entry for which there is something counts. At
	// most 8. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=provider
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	SignIn []ExportSignIn `json:"signIn,omitempty"`

	// project is the project of Argo CD that the clusters belong to, for the format
	// ArgoCDSecret. Default: none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write the name of an AppProject, such as fleet"
	Project string `json:"project,omitempty"`
}

// ExportSignIn says what clients run to sign in by a provider, and where their credentials may go.
//
// +kubebuilder:validation:XValidation:rule="(has(self.exec) ? 1 : 0) + (has(self.aws) ? 1 : 0) + (has(self.flux) ? 1 : 0) == 1",message="set exactly one of exec, aws and flux"
type ExportSignIn struct {
	// provider is the provider.type of an entry of access, or else its name. Anyone who can
	// write an entry chooses among these.
	// +required
	Provider ProviderName `json:"provider"`

	// hosts are where the credentials may go: names, all names below one, such as
	// *.clusters.example.com, and ranges of addresses, such as 10.8.0.0/16. A cluster with its
	// endpoint elsewhere is not published. List those where no one but your platform runs a
	// server. At most 16.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Hosts []HostPattern `json:"hosts"`

	// exec is a program that prints credentials.
	// +optional
	Exec *ExportExec `json:"exec,omitempty"`

	// aws signs in to a cluster of EKS with the AWS identity of Argo CD's pods: to that with
	// the name in clusterName of the entry's provider.config, or else the name of the entry.
	// +optional
	AWS *ExportAWS `json:"aws,omitempty"`

	// flux signs in with an identity of Flux.
	// +optional
	Flux *ExportFlux `json:"flux,omitempty"`
}

// ExportExec is a program that prints credentials, as in a kubeconfig.
type ExportExec struct {
	// apiVersion is the version of the ExecCredential that the program speaks. Default:
	// client.authentication.k8s.io/v1.
	// +optional
	// +kubebuilder:validation:Enum="client.authentication.k8s.io/v1";"client.authentication.k8s.io/v1beta1"
	APIVersion string `json:"apiVersion,omitempty"`

	// command is the program. Nothing of an entry is filled in here.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[]!#-[^-z|~]+$')",message="write the name or the path of a program, without spaces, quotation marks, backslashes and braces: put what depends on the cluster in args or env"
	Command string `json:"command"`

	// args are the program's arguments. At most 12. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=12
	Args []ExportText `json:"args,omitempty"`

	// env are environment variables that the program gets besides the client's own, by name.
	// At most 8. Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^[A-Za-z_][A-Za-z0-9_]{0,62}$'))",message="write names of environment variables, such as AWS_PROFILE"
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.matches('(?i)(pass[-_. ]?(word|wd|phrase|code)|passwd|token|jwt|bearer|cookie|secret|key|key[-_. ]?data|auth|authorization)s?$'))",message="a variable is for a credential, and what is published holds none: have the program find it in its own environment"
	Env map[string]ExportText `json:"env,omitempty"`

	// installHint tells people who lack the program how to get it. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	InstallHint string `json:"installHint,omitempty"`
}

// ExportText is a text in which {name} stands for the name of the cluster, and {config.KEY} for a
// value of the entry's provider.config, which must begin with a letter or a digit and consist of
// these and ._:/@+=,-, so that it is no option of a program.
//
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^([^{}]|[{]name[}]|[{]config[.][A-Za-z0-9._-]+[}])*$')",message="only {name} and {config.KEY} are known, and no other braces"
// +kubebuilder:validation:XValidation:rule="!self.contains('PRIVATE KEY-----') && !self.matches('eyJ[A-Za-z0-9_-]{5,}[.]eyJ|://[^/?#:@ ]*:[^/?#@ ]+@')",message="this looks like a credential, and what is published holds none: have the program find it where it runs"
type ExportText string

// ExportAWS is how to sign in to a cluster of EKS.
type ExportAWS struct {
	// roleARN is a role that is assumed. Default: none, so that the identity of the pods is
	// used as it is.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^arn:aws[-a-z]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$')",message="write the ARN of a role, such as arn:aws:iam::111122223333:role/argocd"
	RoleARN string `json:"roleARN,omitempty"`
}

// ExportsTo returns the namespaces of the host cluster that exports of some formats write into, in
// the order of the spec.
func (c *Controllers) ExportsTo(formats ...ExportFormat) []string {
	if c == nil {
		return nil
	}
	var out []string
	for _, export := range c.Exports {
		if slices.Contains(formats, export.Format) && !slices.Contains(out, string(export.Namespace)) {
			out = append(out, string(export.Namespace))
		}
	}
	return out
}

// ExportFlux is with which identity Flux signs in.
type ExportFlux struct {
	// provider is generic, for a token of a ServiceAccount that the cluster trusts, or the
	// cloud of the cluster: aws, azure or gcp, for which the entry's provider.config has the
	// name of the cluster there in cluster, such as its ARN.
	// +required
	// +kubebuilder:validation:Enum=aws;azure;gcp;generic
	Provider string `json:"provider"`

	// audiences are those of the token. At most 4. Default: the address of the cluster.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.matches('^[!-~]+$'))",message="write audiences without spaces, such as sts.amazonaws.com"
	Audiences []string `json:"audiences,omitempty"`

	// serviceAccountName is the ServiceAccount in the namespace of the export whose token is
	// used. Default: that of Flux's own controller.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a ServiceAccount, such as fleet"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

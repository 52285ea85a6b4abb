package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// NamespaceName is the name of a namespace of the host cluster.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="write the name of a namespace, such as clusters"
type NamespaceName string

// LabelPattern chooses labels by their keys.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?|[*])$') && self != '*' && self.indexOf('/') <= 253",message="write the key of a label, such as region, or all keys with a prefix, such as example.com/*"
type LabelPattern string

// ProviderName is the name of an access provider.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$')",message="write the name of an access provider, such as secretreader: letters, digits, dashes, underscores, dots and slashes"
// +kubebuilder:validation:XValidation:rule="!self.lowerAscii().startsWith('argo-cd-builtin-')",message="names that begin with argo-cd-builtin- are reserved: for these, Argo CD runs a program of its own with its own cloud credentials, and whoever writes an entry chooses which server gets them; give clients a plugin under another name"
type ProviderName string

// ClusterAPIDeletionPolicy says what becomes of the entry of a cluster that is gone.
//
// +kubebuilder:validation:Enum=Retain;Delete
type ClusterAPIDeletionPolicy string

const (
	// ClusterAPIRetain keeps the entry until a person deletes it.
	ClusterAPIRetain ClusterAPIDeletionPolicy = "Retain"
	// ClusterAPIDelete deletes the entry after the grace period.
	ClusterAPIDelete ClusterAPIDeletionPolicy = "Delete"
)

// ClusterAPI says which clusters of Cluster API have entries. Only Clusters of
// cluster.x-k8s.io/v1beta2 are read, and no Secrets. A Cluster or a namespace with the label
// clusterregistry.k8s.io/ignore: "true" is left out.
//
// +kubebuilder:validation:XValidation:rule="!has(self.accessTemplates) || self.accessTemplates.all(t, t.namespaces.all(n, n in self.namespaces))",message="a template of accessTemplates is for a namespace that is not read: add it to namespaces, or remove it there"
// +kubebuilder:validation:XValidation:rule="!has(self.clusterSets) || self.clusterSets.all(s, s.namespace in self.namespaces)",message="clusterSets has a namespace that is not read: add it to namespaces, or remove it there"
type ClusterAPI struct {
	// namespaces are those of the host cluster whose Clusters are read. Each, other than the
	// registry's own, needs the label registry.clusterregistry.io/NAME, for the registry's name,
	// with the registry's namespace as its value, and an administrator must have allowed the
	// registry's namespace to reach others (--aggregated-namespaces of the operator). At most
	// 32.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Namespaces []NamespaceName `json:"namespaces"`

	// selector selects Clusters by their labels and, where a Cluster has no label of a key,
	// by that of its namespace. Default: all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// nameTemplate is the name of an entry, in which {name} and {namespace} stand for those
	// of the Cluster. A name that is taken is left alone, and the Cluster has no entry.
	// Default: {name}.
	// +optional
	// +kubebuilder:default="{name}"
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.contains('{name}') && self.replace('{name}', 'a').replace('{namespace}', 'a').matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="write lowercase letters, digits, dashes, {namespace}, and {name}, which make a name of 63 characters at most, and without which all clusters would have one name, such as {namespace}-{name}"
	NameTemplate string `json:"nameTemplate,omitempty"`

	// labels are the labels of a Cluster that its entry gets: keys, or all keys with a
	// prefix, such as example.com/*. At most 32. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('clusterregistry.k8s.io/'))",message="labels of clusterregistry.k8s.io say something of entries of the registry, and are not copied: remove them"
	Labels []LabelPattern `json:"labels,omitempty"`

	// accessTemplates are access that entries get, by the namespace of their Cluster. At most 8.
	// Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	AccessTemplates []AccessTemplate `json:"accessTemplates,omitempty"`

	// clusterSets are the ClusterSets of entries, by the namespace of their Cluster. A set that
	// someone else has chosen stays. At most 32. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +kubebuilder:validation:MaxItems=32
	ClusterSets []NamespaceClusterSet `json:"clusterSets,omitempty"`

	// deletionPolicy says what happens to the entry of a Cluster that was deleted or is no
	// longer selected: Retain keeps it, with the condition Joined False, Delete deletes it after
	// the grace period. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy ClusterAPIDeletionPolicy `json:"deletionPolicy,omitempty"`

	// gracePeriodSeconds is how long an entry stays after its Cluster is gone, with
	// deletionPolicy Delete, 0 to 2592000 (30 days). Default: 3600.
	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2592000
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`
}

// setDefaults fills in what the schema does.
func (c *ClusterAPI) setDefaults() {
	orElse(&c.NameTemplate, "{name}")
	orElse(&c.DeletionPolicy, ClusterAPIRetain)
	if c.GracePeriodSeconds == nil {
		c.GracePeriodSeconds = ptr.To[int32](3600)
	}
}

// Reaches returns the namespaces of the host cluster that a function reads from or writes
// into, in the order of the spec.
func (c *Controllers) Reaches(function string) []string {
	var out []string
	switch {
	case c == nil:
	case function == "clusterAPI" && c.ClusterAPI != nil:
		for _, namespace := range c.ClusterAPI.Namespaces {
			out = append(out, string(namespace))
		}
	case function == "exports":
		for _, export := range c.Exports {
			out = append(out, string(export.Namespace))
		}
	case function == "clusterSelections":
		for _, selections := range c.ClusterSelections {
			out = append(out, string(selections.Namespace))
		}
	}
	return slices.Clip(out)
}

package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExportFormat is what kind of object a cluster is published as.
//
// +kubebuilder:validation:Enum=ClusterProfile
type ExportFormat string

// ExportClusterProfile is a ClusterProfile (multicluster.x-k8s.io), which several tools read.
const ExportClusterProfile ExportFormat = "ClusterProfile"

// Export says which clusters are published in a namespace, and as what.
type Export struct {
	// namespace is a namespace of the host cluster. If it is not the registry's own, it needs
	// the label registry.clusterregistry.io/NAME with the registry's namespace as its value,
	// where NAME is the registry's name, and an administrator must have allowed the
	// registry's namespace to reach others (--aggregated-namespaces of the operator).
	// +required
	Namespace NamespaceName `json:"namespace"`

	// format is what each cluster is published as: ClusterProfile (multicluster.x-k8s.io).
	// +required
	Format ExportFormat `json:"format"`

	// selector selects clusters of the registry by their labels. Default: all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

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

// Package format is what an export and the formats of its objects have in common: a format
// makes an object of a cluster for those who read it, and the export keeps that object.
package format

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/labelkeys"
	"github.com/clusterregistry/operator/internal/contract"
)

// FieldManager is by whom objects are applied.
const FieldManager = "clusterregistry-controller-exports"

// Source is which registry objects are of.
type Source struct {
	// Registry and Namespace are the name and the namespace of the ClusterRegistry.
	Registry, Namespace string
}

// Target is a namespace that objects are published in, and of which clusters.
type Target struct {
	Namespace string
	Selector  labels.Selector
	// Labels are those that are copied.
	Labels labelkeys.AllowList
	// Providers are the names of access providers that may be published: what a client
	// does with one it finds by its name, and writers of entries choose among these alone.
	Providers []string
	// SignIn is what clients run for a provider, where the object says so and not the client.
	SignIn []SignIn
	// Owner is what objects go with when it is deleted; nil for nothing.
	Owner *metav1.OwnerReference
	// Project is that of Argo CD which clusters belong to.
	Project string
	// Occupant returns the name of another cluster whose object leads to a place already, empty
	// for none. The formats ask whose consumers tell clusters apart by that.
	Occupant func(place string) string
}

// Copied returns the labels of a cluster that its object has as well, but for those that say whose
// an object is: whoever writes an entry gives it to no other registry.
func (t Target) Copied(cluster *v1beta1.Cluster) map[string]string {
	out := map[string]string{}
	for key, value := range cluster.Labels {
		if t.Labels.Allows(key) && key != FormatLabel && !strings.HasPrefix(key, contract.NamespaceLabel("")) {
			out[key] = value
		}
	}
	return out
}

// Kind is what the objects of a format are.
type Kind struct {
	Resource schema.GroupVersionResource
	schema.GroupVersionKind
	// Name is that of the format.
	Name string
	// Words is what people call several of them, and Rights what the RoleBinding is named after
	// that lets them be written.
	Words, Rights string
	// CRD is where users get their API, empty for what every cluster has.
	CRD string
	// SignIn are the kinds of what is run for a provider that the format takes; none where
	// clients know what to run.
	SignIn []By
	// Prefix is before the name of the cluster in the name of an object.
	Prefix string
	// Selector selects those of one registry by their labels. Only these are read where
	// Private says that the others are none of this program's business, and none are
	// published in the namespace of the registry, which has its keys and what pods trust.
	Selector string
	Private  bool
}

// Format makes the objects of one registry for one kind of consumer: one for each cluster, in
// each namespace.
type Format interface {
	Kind() Kind
	// Offered returns why nothing is to be published of a cluster, nil when something is, once
	// its endpoint is verified.
	Offered(cluster *v1beta1.Cluster, in Target) *Withheld
	// Want returns the object that a cluster is to have, and why it is to have none, given
	// what is known of its endpoint and the object that there is, nil for none. An object that
	// is withheld and can't be deleted becomes what is returned with that, so that it leads no
	// one anywhere.
	Want(cluster *v1beta1.Cluster, in Target, known Known, have *unstructured.Unstructured) (Object, *Withheld)
	// Ours reports whether an object belongs to the registry, and how one that does not
	// differs, as in "has the label a=b".
	Ours(have *unstructured.Unstructured) (ours bool, differs string)
	// Leads returns where consumers connect to by an object, empty for nowhere.
	Leads(have *unstructured.Unstructured) (place string)
}

// Object is what an object is to be.
type Object interface {
	// New returns the metadata and the content of one that is created: as much as says whose
	// it is.
	New() (metadata, content map[string]any)
	// Changes returns what differs in the one that there is, what consumers wait for first.
	Changes(have *unstructured.Unstructured) ([]Change, error)
}

// Change is a request that brings a part of an object up to date.
type Change struct {
	// Subresource is the part, empty for all that is not one.
	Subresource string
	// Metadata and Content are all that this program says of the part.
	Metadata, Content map[string]any
	// Patch is a JSON patch to make instead, where applying the part is not enough.
	Patch []map[string]any
}

// Withheld is why a cluster has no object, or leads no one anywhere.
type Withheld struct {
	Reason, Message string
	Then            Consequence
}

// Consequence is what becomes of an object that is withheld.
type Consequence int

const (
	// Wait leaves it as it is until more is known.
	Wait Consequence = iota
	// Sweep deletes it with all others that are, unless they are too many.
	Sweep
	// Delete deletes it at once.
	Delete
	// Keep leaves it as it is, and says so.
	Keep
)

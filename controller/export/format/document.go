package format

import (
	"encoding/base64"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// FormatLabel says of what format a document is.
	FormatLabel = "exports.clusterregistry.io/format"
	// ProviderAnnotation says by which provider clients of a document sign in.
	ProviderAnnotation = "exports.clusterregistry.io/provider"
	// SignInAnnotation has a digest of what the export had clients run for that provider.
	SignInAnnotation = "exports.clusterregistry.io/sign-in"
)

// Document is a Secret or a ConfigMap of a registry, of a format.
type Document struct {
	Source
	Format string
	// Secret says that it is one.
	Secret bool

	Labels, Annotations, Data map[string]string
	// Owner is what it goes with; nil for nothing.
	Owner *metav1.OwnerReference
}

// Mark returns the labels that say whose a document is.
func (d Document) Mark() map[string]string {
	return map[string]string{contract.NamespaceLabel(d.Registry): d.Namespace, FormatLabel: d.Format}
}

// Selector selects the documents of the registry and the format.
func (d Document) Selector() string {
	return contract.NamespaceLabel(d.Registry) + "=" + d.Namespace + "," + FormatLabel + "=" + d.Format
}

// Ours reports whether a document belongs to the registry, and how one that does not differs.
func (d Document) Ours(have *unstructured.Unstructured) (ours bool, differs string) {
	for key, value := range d.Mark() {
		if have.GetLabels()[key] != value {
			return false, "lacks the labels " + d.Selector()
		}
	}
	return true, ""
}

// New returns the labels and the owner alone: what is in it is applied, so that it can be taken out again.
func (d Document) New() (metadata, content map[string]any) {
	return WithOwner(map[string]any{"labels": texts(d.Mark())}, d.Owner), map[string]any{}
}

// Changes returns what differs in a document: all of it or nothing.
func (d Document) Changes(have *unstructured.Unstructured) ([]Change, error) {
	labels := d.Mark()
	maps.Copy(labels, d.Labels)
	maps.Copy(labels, d.Mark()) // which no label of a cluster changes
	applied := Owned(have.GetManagedFields(), "")
	if applied != nil && within(labels, have.GetLabels()) && within(d.Annotations, have.GetAnnotations()) && within(d.Data, d.Stored(have)) && !d.surplus(applied, labels) && HasOwner(have.GetOwnerReferences(), d.Owner) {
		return nil, nil
	}
	data := maps.Clone(d.Data)
	if d.Secret {
		for key, value := range data {
			data[key] = base64.StdEncoding.EncodeToString([]byte(value))
		}
	}
	return []Change{{
		Metadata: WithOwner(map[string]any{"labels": texts(labels), "annotations": texts(d.Annotations)}, d.Owner),
		Content:  map[string]any{"data": texts(data)},
	}}, nil
}

// surplus reports whether something that was applied is no longer a part of the document.
func (d Document) surplus(applied *fieldpath.Set, labels map[string]string) bool {
	found := false
	applied.Iterate(func(path fieldpath.Path) {
		for parent, want := range map[string]map[string]string{"metadata.labels": labels, "metadata.annotations": d.Annotations, "data": d.Data} {
			names := strings.Split(parent, ".")
			if len(path) != len(names)+1 || path[len(names)].FieldName == nil {
				continue
			}
			inside := true
			for i, name := range names {
				inside = inside && path[i].FieldName != nil && *path[i].FieldName == name
			}
			if _, wanted := want[*path[len(names)].FieldName]; inside && !wanted {
				found = true
			}
		}
	})
	return found
}

// Stored returns the data of a document that there is.
func (d Document) Stored(have *unstructured.Unstructured) map[string]string {
	data, _, _ := unstructured.NestedStringMap(have.Object, "data")
	if !d.Secret {
		return data
	}
	out := map[string]string{}
	for key, value := range data {
		if text, err := base64.StdEncoding.DecodeString(value); err == nil {
			out[key] = string(text)
		}
	}
	return out
}

// within reports whether all of a map is in another one.
func within(want, have map[string]string) bool {
	for key, value := range want {
		if is, ok := have[key]; !ok || is != value {
			return false
		}
	}
	return true
}

// texts returns a map as objects have it.
func texts(of map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range of {
		out[key] = value
	}
	return out
}

package clusterapi

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

var clusterSetPath = fieldpath.MakePathOrDie("spec", "clusterSet")

// fillIn brings what was granted to an entry up to date. What others have written stays: a
// ClusterSet, and each way to sign in that someone has added or changed.
func (f filling) fillIn(entry *v1beta1.Cluster, mine *fieldpath.Set) {
	if set := entry.Spec.ClusterSet; set != f.clusterSet && (set == "" || mine.Has(clusterSetPath)) {
		entry.Spec.ClusterSet = f.clusterSet
		delete(entry.Labels, v1beta1.ClusterSetLabel) // the server keeps it
	}
	own, wanted := ownAccess(entry), f.allowed(entry)
	entry.Spec.Access = slices.DeleteFunc(slices.Clone(entry.Spec.Access), func(a v1beta1.Access) bool {
		return own[a.Name] && !slices.ContainsFunc(wanted, func(b v1beta1.Access) bool { return a.Name == b.Name })
	})
	for _, way := range wanted {
		switch at := slices.IndexFunc(entry.Spec.Access, func(a v1beta1.Access) bool { return a.Name == way.Name }); {
		case at < 0:
			entry.Spec.Access = append(entry.Spec.Access, *way.DeepCopy())
		case own[way.Name]:
			entry.Spec.Access[at] = *way.DeepCopy()
		}
	}
}

// ownAccess returns the names of the ways to sign in of which this package alone has written
// all: one that a person has changed in part is that person's.
func ownAccess(entry *v1beta1.Cluster) map[string]bool {
	if len(entry.Spec.Access) == 0 {
		return nil
	}
	mine, others := accessOf(written(entry)), accessOf(fieldsOf(entry, func(m metav1.ManagedFieldsEntry) bool {
		return m.Subresource == "" && (m.Manager != Manager || m.Operation != metav1.ManagedFieldsOperationUpdate)
	}))
	out := map[string]bool{}
	for _, way := range entry.Spec.Access {
		key := fieldpath.MakePathOrDie(fieldpath.KeyByFields("name", way.Name))[0]
		out[way.Name] = !mine.WithPrefix(key).Empty() && others.WithPrefix(key).Empty() && !others.Members.Has(key)
	}
	return out
}

// accessOf returns the fields of a set below spec.access.
func accessOf(set *fieldpath.Set) *fieldpath.Set {
	for _, element := range fieldpath.MakePathOrDie("spec", "access") {
		set = set.WithPrefix(element)
	}
	return set
}

// trimAccess keeps of the ways to sign in what decisions follow from: those that this package
// has written, and the names of others.
func trimAccess(entry *v1beta1.Cluster) {
	own := ownAccess(entry)
	for i, way := range entry.Spec.Access {
		if !own[way.Name] {
			entry.Spec.Access[i] = v1beta1.Access{Name: way.Name}
		}
	}
}

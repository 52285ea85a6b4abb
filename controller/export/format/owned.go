package format

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Owned returns the fields that this program has applied, to a subresource or to the rest;
// nil when it has never done so.
func Owned(fields []metav1.ManagedFieldsEntry, subresource string) *fieldpath.Set {
	i := slices.IndexFunc(fields, func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == FieldManager && m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == subresource
	})
	if i < 0 {
		return nil
	}
	set := &fieldpath.Set{}
	if fields[i].FieldsV1 == nil || set.FromJSON(fields[i].FieldsV1.GetRawReader()) != nil {
		return &fieldpath.Set{} // what can't be read takes nothing back, and the next change does
	}
	return set
}

// Written returns when this program last wrote an object, by the clock of the API server:
// a controller that takes over writes no sooner than the one before would have.
func Written(fields []metav1.ManagedFieldsEntry) (last time.Time) {
	for _, m := range fields {
		if m.Manager == FieldManager && m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}

// Foreign reports whether someone else has written something of a part of an object: nothing
// of it is taken for verified then.
func Foreign(fields []metav1.ManagedFieldsEntry, part fieldpath.Path) bool {
	return slices.ContainsFunc(fields, func(m metav1.ManagedFieldsEntry) bool {
		if m.Manager == FieldManager && m.Operation == metav1.ManagedFieldsOperationApply || m.FieldsV1 == nil {
			return false
		}
		set := &fieldpath.Set{}
		if set.FromJSON(m.FieldsV1.GetRawReader()) != nil {
			return true
		}
		found := false
		set.Iterate(func(path fieldpath.Path) {
			found = found || len(path) <= len(part) && path.Equals(part[:len(path)]) || len(path) > len(part) && path[:len(part)].Equals(part)
		})
		return found
	})
}

package clusterprofile

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// surplus reports whether fields that were applied are no longer a part of a profile: a
// label, or an entry of one of the lists of the status.
func surplus(applied *fieldpath.Set, want *profile) bool {
	found := false
	lists := map[string]func(name string) bool{
		"conditions": func(name string) bool {
			return slices.ContainsFunc(want.Status.Conditions, func(c metav1.Condition) bool { return c.Type == name })
		},
		"properties": func(name string) bool {
			return slices.ContainsFunc(want.Status.Properties, func(p property) bool { return p.Name == name })
		},
		"accessProviders": func(name string) bool {
			return slices.ContainsFunc(want.Status.AccessProviders, func(a accessProvider) bool { return a.Name == name })
		},
	}
	applied.Iterate(func(path fieldpath.Path) {
		if len(path) < 3 || path[0].FieldName == nil || path[1].FieldName == nil {
			return
		}
		switch parent, field, entry := *path[0].FieldName, *path[1].FieldName, path[2]; {
		case parent == "metadata" && field == "labels" && entry.FieldName != nil:
			_, wanted := want.Labels[*entry.FieldName]
			found = found || !wanted
		case parent == "status" && lists[field] != nil && entry.Key != nil && len(*entry.Key) == 1:
			name, _ := (*entry.Key)[0].Value.Unstructured().(string)
			found = found || !lists[field](name)
		}
	})
	return found
}

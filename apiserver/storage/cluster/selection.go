package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// selectable are the fields, beside metadata.name, that a field selector may
// name. Each is indexed: a list that asks for one exact value is served from
// an index of the watch cache.
var selectable = map[string]func(*clusterregistry.Cluster) string{
	idField:  func(c *clusterregistry.Cluster) string { return c.Spec.ID },
	setField: setOf,
	"status.version.kubernetes": func(c *clusterregistry.Cluster) string {
		if c.Status == nil {
			return ""
		}
		return c.Status.Version.Kubernetes
	},
}

const (
	idField  = "spec.id"
	setField = "spec.clusterSet"
)

// versions are the API's versions, each with the selectable fields that it lacks.
var versions = map[schema.GroupVersion]sets.Set[string]{
	v1alpha1.SchemeGroupVersion: sets.New(idField, setField),
	v1beta1.SchemeGroupVersion:  nil,
}

// AddFieldLabelConversions lets the versions' clients use the selectable fields.
func AddFieldLabelConversions(scheme *runtime.Scheme) error {
	for version, lacks := range versions {
		names := slices.DeleteFunc(selectableNames(), lacks.Has)
		convert := func(label, value string) (string, string, error) {
			if slices.Contains(names, label) || label == "metadata.name" {
				return label, value, nil
			}
			return "", "", fmt.Errorf("clusters can't be selected by field %q; the fields are metadata.name, %s", label, strings.Join(names, ", "))
		}
		if err := scheme.AddFieldLabelConversionFunc(version.WithKind("Cluster"), convert); err != nil {
			return err
		}
	}
	return nil
}

func selectableNames() []string { return slices.Sorted(maps.Keys(selectable)) }

// attributes returns what selectors see of a cluster.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	c, ok := obj.(*clusterregistry.Cluster)
	if !ok {
		return nil, nil, fmt.Errorf("%T is not a Cluster", obj)
	}
	set := generic.ObjectMetaFieldsSet(&c.ObjectMeta, false)
	for name, value := range selectable {
		set[name] = value(c)
	}
	return c.Labels, set, nil
}

// match returns the predicate of a list or watch.
func match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes, IndexFields: selectableNames(), IndexLabels: []string{clusterregistry.ClusterSetLabel}}
}

// indexers are the indexes of the watch cache: of each selectable field, and of the label
// of a cluster's set, which is selected by as well.
func indexers() *cache.Indexers {
	out := cache.Indexers{storage.LabelIndex(clusterregistry.ClusterSetLabel): index(func(c *clusterregistry.Cluster) string { return c.Labels[clusterregistry.ClusterSetLabel] })}
	for name, value := range selectable {
		out[storage.FieldIndex(name)] = index(value)
	}
	return &out
}

func index(value func(*clusterregistry.Cluster) string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		c, ok := obj.(*clusterregistry.Cluster)
		if !ok {
			return nil, fmt.Errorf("%T is not a Cluster", obj)
		}
		return []string{value(c)}, nil
	}
}

// reset returns the fields with the given dotted paths, for every version.
func reset(paths ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, path := range paths {
		var parts []any
		for part := range strings.SplitSeq(path, ".") {
			parts = append(parts, part)
		}
		set.Insert(fieldpath.MakePathOrDie(parts...))
	}
	out := map[fieldpath.APIVersion]*fieldpath.Set{}
	for version := range versions {
		out[fieldpath.APIVersion(version.String())] = set
	}
	return out
}

package heartbeat

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
	base "github.com/clusterregistry/operator/apiserver/storage/strategy"
	"github.com/clusterregistry/operator/apiserver/storage/table"
)

// strategy decides on writes.
type strategy struct{ base.Base }

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTUpdateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}
)

// PrepareForCreate changes nothing: see stamp.
func (strategy) PrepareForCreate(context.Context, runtime.Object) {}

// PrepareForUpdate changes nothing: see stamp.
func (strategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ClusterHeartbeat(obj.(*clusterregistry.ClusterHeartbeat))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ClusterHeartbeatUpdate(obj.(*clusterregistry.ClusterHeartbeat), old.(*clusterregistry.ClusterHeartbeat))
}

// GetResetFields names the fields that no one can own.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range []string{ClusterField, "clusterUID", reporterField, "renewTime"} {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(v1beta1.SchemeGroupVersion.String()): set}
}

// The fields, beside metadata.name, that a field selector may name. Watch caches have an index
// by ClusterField.
const (
	ClusterField  = "clusterName"
	reporterField = "reporter"
)

// AddFieldLabelConversions lets clients use the selectable fields.
func AddFieldLabelConversions(scheme *runtime.Scheme) error {
	return scheme.AddFieldLabelConversionFunc(v1beta1.SchemeGroupVersion.WithKind("ClusterHeartbeat"), func(label, value string) (string, string, error) {
		switch label {
		case "metadata.name", ClusterField, reporterField:
			return label, value, nil
		}
		return "", "", fmt.Errorf("heartbeats can't be selected by field %q; the fields are metadata.name, %s, %s", label, ClusterField, reporterField)
	})
}

// attributes returns what selectors see of a heartbeat.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	beat, ok := obj.(*clusterregistry.ClusterHeartbeat)
	if !ok {
		return nil, nil, fmt.Errorf("%T is not a ClusterHeartbeat", obj)
	}
	set := generic.ObjectMetaFieldsSet(&beat.ObjectMeta, false)
	set[ClusterField], set[reporterField] = beat.ClusterName, beat.Reporter
	return beat.Labels, set, nil
}

// match returns the predicate of a list.
func match(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: attributes, IndexFields: []string{ClusterField}}
}

// indexers are what watch caches look heartbeats up by.
func indexers() *cache.Indexers {
	return &cache.Indexers{storage.FieldIndex(ClusterField): func(obj any) ([]string, error) {
		beat, ok := obj.(*clusterregistry.ClusterHeartbeat)
		if !ok {
			return nil, fmt.Errorf("%T is not a ClusterHeartbeat", obj)
		}
		return []string{beat.ClusterName}, nil
	}}
}

var columns = table.Convertor[*clusterregistry.ClusterHeartbeat]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the heartbeat"},
		{Name: "Cluster", Type: "string", Description: "Name of the cluster"},
		{Name: "Reporter", Type: "string", Description: "Name of the reporter"},
		{Name: "Seen", Type: "string", Description: "Time since the reporter last had a sign of life of the cluster"},
		{Name: "Age", Type: "string", Priority: 1, Description: "Time since the first of them"},
	},
	Row: func(beat *clusterregistry.ClusterHeartbeat, name, age string) []any {
		seen := ""
		if !beat.RenewTime.IsZero() {
			seen = duration.HumanDuration(metav1.Now().Sub(beat.RenewTime.Time))
		}
		return []any{name, beat.ClusterName, beat.Reporter, seen, age}
	},
}

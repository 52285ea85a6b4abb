package validation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// status returns the faults of what controllers report; nil has none.
func status(status *clusterregistry.ClusterStatus) field.ErrorList {
	if status == nil {
		return nil
	}
	path := field.NewPath("status")
	faults := length(path.Child("version", "kubernetes"), status.Version.Kubernetes, MaxName)
	faults = append(faults, metav1validation.ValidateConditions(status.Conditions, path.Child("conditions"))...)
	faults = append(faults, properties(status.Properties, path.Child("properties"))...)
	faults = append(faults, quantities(status.Capacity, path.Child("capacity"))...)
	faults = append(faults, quantities(status.Allocatable, path.Child("allocatable"))...)
	if status.ObservedGeneration < 0 {
		faults = append(faults, field.Invalid(path.Child("observedGeneration"), status.ObservedGeneration, "must not be negative"))
	}
	if nodes := status.Nodes; nodes != nil && (nodes.Ready < 0 || nodes.Total < nodes.Ready) {
		faults = append(faults, field.Invalid(path.Child("nodes", "ready"), nodes.Ready, "must be from 0 to the total"))
	}
	return append(faults, reporters(status.Reporters, path.Child("reporters"))...)
}

func properties(properties []clusterregistry.Property, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	names := map[string]bool{}
	for i, property := range properties {
		at := path.Index(i)
		faults = append(faults, name(property.Name, names, at.Child("name"))...)
		faults = append(faults, length(at.Child("name"), property.Name, MaxName)...)
		faults = append(faults, length(at.Child("value"), property.Value, MaxText)...)
		faults = append(faults, noCredentials(at, map[string]string{"value": property.Value})...)
	}
	return faults
}

func quantities(quantities map[string]resource.Quantity, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(quantities)) {
		if len(name) > MaxName {
			faults = append(faults, length(path, name, MaxName)...)
			continue
		}
		if quantity := quantities[name]; quantity.Sign() < 0 {
			faults = append(faults, field.Invalid(path.Key(name), quantity.String(), "must not be negative"))
		}
	}
	return faults
}

func reporters(reporters []clusterregistry.Reporter, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	names := map[string]bool{}
	for i, reporter := range reporters {
		at := path.Index(i)
		faults = append(faults, name(reporter.Name, names, at.Child("name"))...)
		faults = append(faults, length(at.Child("name"), reporter.Name, MaxName)...)
		faults = append(faults, metav1validation.ValidateConditions(reporter.Conditions, at.Child("conditions"))...)
	}
	return faults
}

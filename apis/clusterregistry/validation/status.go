package validation

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	faults := size(path, textOfStatus(status), MaxStatus, fmt.Sprintf("must have at most %d bytes of text in all", MaxStatus))
	faults = append(faults, length(path.Child("version", "kubernetes"), status.Version.Kubernetes, MaxName)...)
	faults = append(faults, conditions(status.Conditions, path.Child("conditions"))...)
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

// conditions returns the faults of conditions.
func conditions(conditions []metav1.Condition, path *field.Path) field.ErrorList {
	return append(count(path, len(conditions), MaxItems), metav1validation.ValidateConditions(conditions, path)...)
}

// textOfStatus counts the bytes of text of a status.
func textOfStatus(status *clusterregistry.ClusterStatus) int {
	n := 0
	add := func(conditions []metav1.Condition) {
		for _, condition := range conditions {
			n += len(condition.Type) + len(condition.Reason) + len(condition.Message)
		}
	}
	add(status.Conditions)
	for _, reporter := range status.Reporters {
		n += len(reporter.Name)
		add(reporter.Conditions)
	}
	for _, property := range status.Properties {
		n += len(property.Name) + len(property.Value)
	}
	return n
}

func properties(properties []clusterregistry.Property, path *field.Path) field.ErrorList {
	faults := count(path, len(properties), MaxProperties)
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
	faults := count(path, len(quantities), MaxItems)
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
	faults := count(path, len(reporters), MaxReporters)
	names := map[string]bool{}
	for i, reporter := range reporters {
		at := path.Index(i)
		faults = append(faults, name(reporter.Name, names, at.Child("name"))...)
		faults = append(faults, length(at.Child("name"), reporter.Name, MaxName)...)
		faults = append(faults, conditions(reporter.Conditions, at.Child("conditions"))...)
	}
	return faults
}

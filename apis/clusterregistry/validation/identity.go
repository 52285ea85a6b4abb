package validation

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// identity returns the faults of what v1alpha1 has no field for, but for the
// ways to sign in.
func identity(spec *clusterregistry.ClusterSpec, path *field.Path) field.ErrorList {
	faults := length(path.Child("displayName"), spec.DisplayName, MaxDisplayName)
	faults = append(faults, noCredentials(path, map[string]string{"displayName": spec.DisplayName})...)
	if tooLong := length(path.Child("id"), spec.ID, MaxID); len(tooLong) > 0 {
		faults = append(faults, tooLong...)
	} else if spec.ID != "" {
		for _, fault := range validation.IsDNS1123Subdomain(spec.ID) {
			faults = append(faults, field.Invalid(path.Child("id"), spec.ID, fault))
		}
	}
	faults = append(faults, clusterSet(spec.ClusterSet, path.Child("clusterSet"))...)
	faults = append(faults, taints(spec.Taints, path.Child("taints"))...)
	if spec.Heartbeat != nil {
		at := path.Child("heartbeat")
		faults = append(faults, between(at.Child("periodSeconds"), spec.Heartbeat.PeriodSeconds, 1, 86400)...)
		faults = append(faults, between(at.Child("toleratedMisses"), spec.Heartbeat.ToleratedMisses, 0, 100)...)
	}
	if spec.Manager != nil {
		at := path.Child("manager")
		faults = append(faults, required(at, map[string]string{"name": spec.Manager.Name})...)
		faults = append(faults, length(at.Child("name"), spec.Manager.Name, MaxName)...)
	}
	if spec.SourceRef != nil {
		at := path.Child("sourceRef")
		faults = append(faults, required(at, map[string]string{"kind": spec.SourceRef.Kind, "name": spec.SourceRef.Name})...)
		ref := spec.SourceRef
		faults = append(faults, lengths(at, MaxName, map[string]string{"apiVersion": ref.APIVersion, "kind": ref.Kind, "namespace": ref.Namespace, "name": ref.Name, "uid": ref.UID})...)
	}
	return faults
}

// constants returns a fault for each change of what no one may change. Who may change the
// manager, and the source, is the server's to say.
func constants(spec, old *clusterregistry.ClusterSpec) field.ErrorList {
	path := field.NewPath("spec")
	var faults field.ErrorList
	if old.ID != "" && spec.ID != old.ID {
		faults = append(faults, field.Invalid(path.Child("id"), spec.ID, "may be set once, and then neither changed nor removed; when it is wrong, delete the cluster and create it again"))
	}
	// It changes when the object was made again, such as in another host cluster.
	if old.SourceRef != nil && spec.SourceRef == nil {
		faults = append(faults, field.Invalid(path.Child("sourceRef"), "", "may be changed, and not removed; when it is wrong, delete the cluster and create it again"))
	}
	return faults
}

func taints(taints []clusterregistry.Taint, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	effects := []clusterregistry.TaintEffect{clusterregistry.TaintNoExecute, clusterregistry.TaintNoSchedule, clusterregistry.TaintPreferNoSchedule}
	seen := map[clusterregistry.Taint]bool{}
	for i, taint := range taints {
		at := path.Index(i)
		for _, fault := range validation.IsQualifiedName(taint.Key) {
			faults = append(faults, field.Invalid(at.Child("key"), taint.Key, fault))
		}
		for _, fault := range validation.IsValidLabelValue(taint.Value) {
			faults = append(faults, field.Invalid(at.Child("value"), taint.Value, fault))
		}
		if !slices.Contains(effects, taint.Effect) {
			faults = append(faults, field.NotSupported(at.Child("effect"), taint.Effect, effects))
		}
		taint.Value = ""
		if seen[taint] {
			faults = append(faults, field.Duplicate(at, fmt.Sprintf("%s:%s", taint.Key, taint.Effect)))
		}
		seen[taint] = true
	}
	return faults
}

// required returns a fault for each of a structure's fields that is empty.
func required(path *field.Path, values map[string]string) field.ErrorList {
	var faults field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] == "" {
			faults = append(faults, field.Required(path.Child(name), ""))
		}
	}
	return faults
}

// lengths returns a fault for each of a structure's fields that is too long.
func lengths(path *field.Path, most int, values map[string]string) field.ErrorList {
	var faults field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(values)) {
		faults = append(faults, length(path.Child(name), values[name], most)...)
	}
	return faults
}

// noCredentials returns a fault for each of a structure's fields that looks like a
// credential.
func noCredentials(path *field.Path, values map[string]string) field.ErrorList {
	var faults field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if what := credential(values[name]); what != "" {
			faults = append(faults, forbidden(path.Child(name), values[name], "the value looks like "+what))
		}
	}
	return faults
}

func between(path *field.Path, value, least, most int32) field.ErrorList {
	if least <= value && value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be from %d to %d", least, most))}
}

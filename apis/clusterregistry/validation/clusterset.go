package validation

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// ClusterSet returns the faults of a new set.
func ClusterSet(set *clusterregistry.ClusterSet) field.ErrorList {
	if faults := metadataBounds(&set.ObjectMeta); len(faults) > 0 {
		return discreet(faults)
	}
	faults := apivalidation.ValidateObjectMeta(&set.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	return discreet(append(faults, setSpec(&set.Spec)...))
}

// ClusterSetUpdate returns the faults of a change to a set. What the stored set has wrong,
// too, and in no lesser measure, is none.
func ClusterSetUpdate(set, old *clusterregistry.ClusterSet) field.ErrorList {
	if faults := added(&set.ObjectMeta, &old.ObjectMeta, metadataBounds); len(faults) > 0 {
		return discreet(faults)
	}
	faults := apivalidation.ValidateObjectMetaUpdate(&set.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
	return discreet(append(faults, added(&set.Spec, &old.Spec, setSpec)...))
}

func setSpec(spec *clusterregistry.ClusterSetSpec) field.ErrorList {
	path := field.NewPath("spec")
	faults := length(path.Child("displayName"), spec.DisplayName, MaxDisplayName)
	faults = append(faults, length(path.Child("description"), spec.Description, MaxText)...)
	return append(faults, noCredentials(path, map[string]string{"displayName": spec.DisplayName, "description": spec.Description})...)
}

// clusterSet returns the faults of the name of a set, which may be empty.
func clusterSet(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	var faults field.ErrorList
	for _, fault := range validation.IsDNS1123Label(name) {
		faults = append(faults, field.Invalid(path, name, fault))
	}
	return faults
}

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the operator's API group.
const GroupName = "operator.clusterregistry.io"

// SchemeGroupVersion is the group with this version.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

var (
	// SchemeBuilder collects what the package registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the types of this version.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the group's resource with the given name.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &ClusterRegistry{}, &ClusterRegistryList{}, &ClusterRegistryBackup{}, &ClusterRegistryBackupList{}, &ClusterSelection{}, &ClusterSelectionList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

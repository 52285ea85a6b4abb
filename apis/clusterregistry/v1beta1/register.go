package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// GroupName is the API group of clusters.
const GroupName = clusterregistry.GroupName

// SchemeGroupVersion is the group with this version.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}

// Resource returns the group's resource with the given name.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

var (
	// SchemeBuilder collects what the group's packages register.
	SchemeBuilder      runtime.SchemeBuilder
	localSchemeBuilder = &SchemeBuilder

	// AddToScheme registers the types of this version.
	AddToScheme = localSchemeBuilder.AddToScheme
)

func init() {
	localSchemeBuilder.Register(addKnownTypes)
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &Cluster{}, &ClusterList{}, &ClusterSet{}, &ClusterSetList{}, &ClusterHeartbeat{}, &ClusterHeartbeatList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}

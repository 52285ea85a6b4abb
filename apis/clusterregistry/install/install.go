// Package install registers every version of the registry's API in a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// Install registers the internal types and all versions, the preferred first.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(clusterregistry.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(v1beta1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1beta1.SchemeGroupVersion, v1alpha1.SchemeGroupVersion))
}

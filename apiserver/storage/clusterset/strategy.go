package clusterset

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
	base "github.com/clusterregistry/operator/apiserver/storage/strategy"
)

// strategy decides on writes.
type strategy struct{ base.Base }

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTUpdateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}
)

// PrepareForCreate drops what the server alone counts.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	set := obj.(*clusterregistry.ClusterSet)
	set.Status = clusterregistry.ClusterSetStatus{}
	set.Generation = 1
}

// PrepareForUpdate keeps what the server counts, and counts changes of the spec.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	set, before := obj.(*clusterregistry.ClusterSet), old.(*clusterregistry.ClusterSet)
	set.Status = before.Status
	set.Generation = before.Generation
	if !equality.DeepEqual(set.Spec, before.Spec) {
		set.Generation++
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ClusterSet(obj.(*clusterregistry.ClusterSet))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ClusterSetUpdate(obj.(*clusterregistry.ClusterSet), old.(*clusterregistry.ClusterSet))
}

// GetResetFields names the fields that no apply can own.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1beta1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// Package cluster stores clusters: what may be written, how it is selected and
// how it is shown.
package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
	base "github.com/clusterregistry/operator/apiserver/storage/strategy"
)

// strategy decides on writes to the main resource: spec and metadata.
type strategy struct{ base.Base }

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTUpdateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}
)

// PrepareForCreate drops what only a controller may report, and what only the
// server keeps.
func (strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	c := obj.(*clusterregistry.Cluster)
	c.Status = nil
	c.Remainder = ""
	c.Generation = 1
	label(ctx, c, &clusterregistry.Cluster{})
}

// PrepareForUpdate keeps the status and what only the server keeps, and counts
// changes of the spec. What the version of the request doesn't show is in the
// cluster already: see Complete.
func (strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	c, before := obj.(*clusterregistry.Cluster), old.(*clusterregistry.Cluster)
	c.Status = before.Status
	c.Remainder = before.Remainder
	c.Generation = before.Generation
	if !equality.DeepEqual(c.Spec, before.Spec) {
		c.Generation++
	}
	label(ctx, c, before)
}

// versionOf returns the version of the API that a request came in, or "" when the
// server itself writes.
func versionOf(ctx context.Context) string {
	info, ok := genericapirequest.RequestInfoFrom(ctx)
	if !ok {
		return ""
	}
	return info.APIVersion
}

func (strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return validation.Cluster(obj.(*clusterregistry.Cluster), versionOf(ctx))
}

func (strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ClusterUpdate(obj.(*clusterregistry.Cluster), old.(*clusterregistry.Cluster), versionOf(ctx))
}

// GetResetFields names the fields that an apply to the main resource can't own.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return reset("status")
}

// statusStrategy decides on writes to the status subresource.
type statusStrategy struct{ strategy }

var _ rest.RESTUpdateStrategy = statusStrategy{}

// AllowCreateOnUpdate is false: a status needs something that has it.
func (statusStrategy) AllowCreateOnUpdate(context.Context) bool { return false }

// PrepareForUpdate keeps everything but the status. Metadata stays as it was, too,
// but for what the server itself keeps there.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	c, before := obj.(*clusterregistry.Cluster), old.(*clusterregistry.Cluster)
	c.Spec = before.Spec
	c.Remainder = before.Remainder
	c.Generation = before.Generation
	c.Labels = before.Labels
	c.Annotations = before.Annotations
	c.Finalizers = before.Finalizers
	c.OwnerReferences = before.OwnerReferences
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ClusterStatusUpdate(obj.(*clusterregistry.Cluster), old.(*clusterregistry.Cluster))
}

// GetResetFields names the fields that an apply to the status can't own.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return reset("spec", "metadata.labels", "metadata.annotations", "metadata.finalizers", "metadata.ownerReferences")
}

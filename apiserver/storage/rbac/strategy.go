package rbac

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	base "github.com/clusterregistry/operator/apiserver/storage/strategy"
)

// strategy decides on writes of one of the kinds.
type strategy struct {
	base.Base
	validate       func(runtime.Object) field.ErrorList
	validateUpdate func(object, old runtime.Object) field.ErrorList
}

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTUpdateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}
)

func (strategy) PrepareForCreate(context.Context, runtime.Object) {}

func (strategy) PrepareForUpdate(_ context.Context, _, _ runtime.Object) {}

func (s strategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return s.validate(object)
}

func (s strategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return s.validateUpdate(object, old)
}

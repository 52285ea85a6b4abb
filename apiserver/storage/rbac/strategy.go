package rbac

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
)

// strategy decides on writes of one of the kinds.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	validate       func(runtime.Object) field.ErrorList
	validateUpdate func(object, old runtime.Object) field.ErrorList
}

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTUpdateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}
)

func (strategy) NamespaceScoped() bool { return false }

// AllowCreateOnUpdate and AllowUnconditionalUpdate are true as in kube-apiserver,
// on which "kubectl auth reconcile" relies.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return true }

func (strategy) AllowUnconditionalUpdate(context.Context) bool { return true }

func (strategy) Canonicalize(runtime.Object) {}

func (strategy) PrepareForCreate(context.Context, runtime.Object) {}

func (strategy) PrepareForUpdate(_ context.Context, _, _ runtime.Object) {}

func (s strategy) Validate(_ context.Context, object runtime.Object) field.ErrorList {
	return s.validate(object)
}

func (s strategy) ValidateUpdate(_ context.Context, object, old runtime.Object) field.ErrorList {
	return s.validateUpdate(object, old)
}

func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

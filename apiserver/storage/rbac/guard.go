package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	"github.com/clusterregistry/operator/apiserver/storage/patch"
)

// Guarded returns the storage as callers use it: a write that would give more
// than the caller holds is forbidden.
func (s *Storage) Guarded(authority Authority) map[string]rest.Storage {
	return map[string]rest.Storage{
		"clusterroles": &guarded{s.Roles, func(ctx context.Context, object runtime.Object) error {
			return authority.ConfirmRole(ctx, object.(*rbacv1.ClusterRole).Rules)
		}},
		"clusterrolebindings": &guarded{s.Bindings, func(ctx context.Context, object runtime.Object) error {
			return authority.ConfirmBinding(ctx, object.(*rbacv1.ClusterRoleBinding).RoleRef.Name)
		}},
	}
}

type guarded struct {
	*genericregistry.Store
	confirm func(context.Context, runtime.Object) error
}

var (
	_ rest.StandardStorage      = &guarded{}
	_ rest.SingularNameProvider = &guarded{}
)

// Create stores what the caller may grant.
func (g *guarded) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if err := g.check(ctx, object); err != nil {
		return nil, err
	}
	return g.Store.Create(ctx, object, validate, options)
}

// Update stores what the caller may grant. Whatever it changes, the whole of
// the new object is checked, as in kube-apiserver: who may write the object but
// does not hold what it grants must not change to whom it does.
func (g *guarded) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	checked := rest.WrapUpdatedObjectInfo(patch.Blame(object), func(ctx context.Context, object, old runtime.Object) (runtime.Object, error) {
		if onlyLetsGo(object, old) {
			return object, nil
		}
		return object, g.check(ctx, object)
	})
	return g.Store.Update(ctx, name, checked, create, update, force, options)
}

func (g *guarded) check(ctx context.Context, object runtime.Object) error {
	err := g.confirm(ctx, object)
	if err == nil || apierrors.IsNotFound(err) {
		return err
	}
	accessor, metaErr := meta.Accessor(object)
	if metaErr != nil {
		return metaErr
	}
	return apierrors.NewForbidden(g.DefaultQualifiedResource, accessor.GetName(), err)
}

// onlyLetsGo reports whether an update changes only what keeps an object from
// being deleted, which grants nothing.
func onlyLetsGo(object, old runtime.Object) bool {
	copied := object.DeepCopyObject()
	after, err := meta.Accessor(copied)
	if err != nil {
		return false
	}
	before, err := meta.Accessor(old)
	if err != nil {
		return false
	}
	after.SetOwnerReferences(before.GetOwnerReferences())
	after.SetFinalizers(before.GetFinalizers())
	after.SetManagedFields(before.GetManagedFields())
	return equality.DeepEqual(copied, old)
}

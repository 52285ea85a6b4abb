// Package rbac stores, in independent mode, who may do what: ClusterRoles and
// ClusterRoleBindings of rbac.authorization.k8s.io/v1. No one can give by them
// what they do not hold themselves.
package rbac

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	base "github.com/clusterregistry/operator/apiserver/storage/strategy"
)

// hub is the version that the server works in. The kinds of v1 serve as their
// own hub, since there is no other version.
var hub = schema.GroupVersion{Group: rbacv1.GroupName, Version: runtime.APIVersionInternal}

// AddToScheme registers the kinds, with the defaults of v1.
func AddToScheme(scheme *runtime.Scheme) error {
	if err := rbacv1.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(hub, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRoleBindingList{})
	scheme.AddTypeDefaultingFunc(&rbacv1.ClusterRoleBinding{}, func(obj any) { setDefaults(obj.(*rbacv1.ClusterRoleBinding)) })
	return scheme.SetVersionPriority(rbacv1.SchemeGroupVersion)
}

func setDefaults(binding *rbacv1.ClusterRoleBinding) {
	if binding.RoleRef.APIGroup == "" {
		binding.RoleRef.APIGroup = rbacv1.GroupName
	}
	for i := range binding.Subjects {
		if subject := &binding.Subjects[i]; subject.APIGroup == "" && subject.Kind != rbacv1.ServiceAccountKind {
			subject.APIGroup = rbacv1.GroupName
		}
	}
}

// Authority decides whether the caller of a request may grant.
type Authority interface {
	// ConfirmRole returns why the caller may not write a ClusterRole of these rules.
	ConfirmRole(ctx context.Context, rules []rbacv1.PolicyRule) error
	// ConfirmBinding returns why the caller may not bind the ClusterRole to someone.
	ConfirmBinding(ctx context.Context, role string) error
}

// Storage holds both kinds, as the server itself reads and writes them: without
// the question whether someone may.
type Storage struct {
	// Roles are the ClusterRoles.
	Roles *genericregistry.Store
	// Bindings are the ClusterRoleBindings.
	Bindings *genericregistry.Store
}

// New returns the storage of both kinds.
func New(scheme *runtime.Scheme, options generic.RESTOptionsGetter) (*Storage, error) {
	roles := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &rbacv1.ClusterRole{} },
		NewListFunc:               func() runtime.Object { return &rbacv1.ClusterRoleList{} },
		DefaultQualifiedResource:  rbacv1.Resource("clusterroles"),
		SingularQualifiedResource: rbacv1.Resource("clusterrole"),
		TableConvertor:            roleColumns,
	}
	if err := complete(roles, strategy{base.New(scheme, rest.Unsupported), validateRole, validateRoleUpdate}, options); err != nil {
		return nil, err
	}
	bindings := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &rbacv1.ClusterRoleBinding{} },
		NewListFunc:               func() runtime.Object { return &rbacv1.ClusterRoleBindingList{} },
		DefaultQualifiedResource:  rbacv1.Resource("clusterrolebindings"),
		SingularQualifiedResource: rbacv1.Resource("clusterrolebinding"),
		TableConvertor:            bindingColumns,
	}
	if err := complete(bindings, strategy{base.New(scheme, rest.Unsupported), validateBinding, validateBindingUpdate}, options); err != nil {
		return nil, err
	}
	return &Storage{Roles: roles, Bindings: bindings}, nil
}

func complete(store *genericregistry.Store, s strategy, options generic.RESTOptionsGetter) error {
	store.CreateStrategy, store.UpdateStrategy, store.DeleteStrategy = s, s, s
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return fmt.Errorf("storage of %s: %w", store.DefaultQualifiedResource, err)
	}
	return nil
}

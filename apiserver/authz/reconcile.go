package authz

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
)

// Reconcile brings the bootstrap roles and bindings into the storage. It adds
// what is missing and takes nothing away; an object whose annotation
// rbac.authorization.kubernetes.io/autoupdate is "false" is left alone.
// Several servers may do so at the same time.
func Reconcile(ctx context.Context, roles, bindings rest.StandardStorage) error {
	// The storage expects what the API's handlers put into a request's context.
	ctx = genericrequest.WithNamespace(ctx, metav1.NamespaceNone)
	for _, role := range bootstrapRoles() {
		options := reconciliation.ReconcileRoleOptions{Role: reconciliation.ClusterRoleRuleOwner{ClusterRole: &role}, Client: roleStore{ctx, roles}, Confirm: true}
		if err := retry.OnError(retry.DefaultBackoff, overtaken, func() error { _, err := options.Run(); return err }); err != nil {
			return fmt.Errorf("bootstrap ClusterRole %s: %w", role.Name, err)
		}
	}
	for _, binding := range bootstrapBindings() {
		options := reconciliation.ReconcileRoleBindingOptions{RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &binding}, Client: bindingStore{ctx, bindings}, Confirm: true}
		if err := retry.OnError(retry.DefaultBackoff, overtaken, func() error { _, err := options.Run(); return err }); err != nil {
			return fmt.Errorf("bootstrap ClusterRoleBinding %s: %w", binding.Name, err)
		}
	}
	return nil
}

// overtaken reports whether another server wrote the object meanwhile.
func overtaken(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// roleStore and bindingStore let the reconciliation work on the storage itself:
// the server has no client of itself that could do everything.
type roleStore struct {
	ctx     context.Context
	storage rest.StandardStorage
}

func (s roleStore) Get(_, name string) (reconciliation.RuleOwner, error) {
	object, err := s.storage.Get(s.ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return reconciliation.ClusterRoleRuleOwner{ClusterRole: object.(*rbacv1.ClusterRole)}, nil
}

func (s roleStore) Create(role reconciliation.RuleOwner) (reconciliation.RuleOwner, error) {
	_, err := s.storage.Create(s.ctx, role.GetObject(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	return role, err
}

func (s roleStore) Update(role reconciliation.RuleOwner) (reconciliation.RuleOwner, error) {
	_, _, err := s.storage.Update(s.ctx, role.GetName(), rest.DefaultUpdatedObjectInfo(role.GetObject()), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return role, err
}

type bindingStore struct {
	ctx     context.Context
	storage rest.StandardStorage
}

func (s bindingStore) Get(_, name string) (reconciliation.RoleBinding, error) {
	object, err := s.storage.Get(s.ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: object.(*rbacv1.ClusterRoleBinding)}, nil
}

func (s bindingStore) Create(binding reconciliation.RoleBinding) (reconciliation.RoleBinding, error) {
	_, err := s.storage.Create(s.ctx, binding.GetObject(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	return binding, err
}

func (s bindingStore) Update(binding reconciliation.RoleBinding) (reconciliation.RoleBinding, error) {
	_, _, err := s.storage.Update(s.ctx, binding.GetName(), rest.DefaultUpdatedObjectInfo(binding.GetObject()), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return binding, err
}

func (s bindingStore) Delete(_, name string, uid types.UID) error {
	_, _, err := s.storage.Delete(s.ctx, name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	return err
}

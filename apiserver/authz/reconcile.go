package authz

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	roleStore := store[reconciliation.RuleOwner]{ctx, roles, func(o runtime.Object) reconciliation.RuleOwner {
		return reconciliation.ClusterRoleRuleOwner{ClusterRole: o.(*rbacv1.ClusterRole)}
	}}
	for _, role := range bootstrapRoles() {
		options := reconciliation.ReconcileRoleOptions{Role: reconciliation.ClusterRoleRuleOwner{ClusterRole: &role}, Client: roleStore, Confirm: true}
		if err := retry.OnError(retry.DefaultBackoff, overtaken, func() error { _, err := options.Run(); return err }); err != nil {
			return fmt.Errorf("bootstrap ClusterRole %s: %w", role.Name, err)
		}
	}
	bindingStore := store[reconciliation.RoleBinding]{ctx, bindings, func(o runtime.Object) reconciliation.RoleBinding {
		return reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: o.(*rbacv1.ClusterRoleBinding)}
	}}
	for _, binding := range bootstrapBindings() {
		options := reconciliation.ReconcileRoleBindingOptions{RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &binding}, Client: bindingStore, Confirm: true}
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

// store lets the reconciliation work on the storage itself: the server has no
// client of itself that could do everything.
type store[T interface {
	GetName() string
	GetObject() runtime.Object
}] struct {
	ctx     context.Context
	storage rest.StandardStorage
	// of makes what is reconciled of a stored object.
	of func(runtime.Object) T
}

var (
	_ reconciliation.RuleOwnerModifier   = store[reconciliation.RuleOwner]{}
	_ reconciliation.RoleBindingModifier = store[reconciliation.RoleBinding]{}
)

func (s store[T]) Get(_, name string) (T, error) {
	object, err := s.storage.Get(s.ctx, name, &metav1.GetOptions{})
	if err != nil {
		var none T
		return none, err
	}
	return s.of(object), nil
}

func (s store[T]) Create(object T) (T, error) {
	_, err := s.storage.Create(s.ctx, object.GetObject(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	return object, err
}

func (s store[T]) Update(object T) (T, error) {
	_, _, err := s.storage.Update(s.ctx, object.GetName(), rest.DefaultUpdatedObjectInfo(object.GetObject()), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return object, err
}

func (s store[T]) Delete(_, name string, uid types.UID) error {
	_, _, err := s.storage.Delete(s.ctx, name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	return err
}

package authz

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	rbacv1listers "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apiserver/storage/inprocess"
)

// Informers keep the roles and bindings of a storage at hand.
type Informers struct{ roles, bindings cache.SharedIndexInformer }

// NewInformers returns informers of the two storages; Run starts them.
func NewInformers(roles, bindings rest.StandardStorage) *Informers {
	return &Informers{roles: informer(roles, &rbacv1.ClusterRole{}), bindings: informer(bindings, &rbacv1.ClusterRoleBinding{})}
}

// RBAC returns what decides by them.
func (i *Informers) RBAC() *RBAC {
	return &RBAC{Roles: rbacv1listers.NewClusterRoleLister(i.roles.GetIndexer()), Bindings: rbacv1listers.NewClusterRoleBindingLister(i.bindings.GetIndexer())}
}

// Run keeps them current until the context ends, and returns once they hold
// what is stored. The error is that the context ended before.
func (i *Informers) Run(ctx context.Context) error {
	go i.roles.RunWithContext(ctx)
	go i.bindings.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), i.roles.HasSynced, i.bindings.HasSynced) {
		return errors.New("stopped before the roles and bindings were read")
	}
	return nil
}

func informer(storage rest.StandardStorage, example runtime.Object) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(inprocess.ListWatch(storage), example, 0, cache.Indexers{})
}

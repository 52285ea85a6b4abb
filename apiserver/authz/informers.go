package authz

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	rbacv1listers "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"
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

// informer reads from the storage itself, not through the API: what decides
// on requests can't depend on one.
func informer(storage rest.StandardStorage, example runtime.Object) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			in, err := internal(options)
			if err != nil {
				return nil, err
			}
			return storage.List(ctx, in)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			in, err := internal(options)
			if err != nil {
				return nil, err
			}
			events, err := storage.Watch(ctx, in)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, unwrap), nil
		},
	}, example, 0, cache.Indexers{})
}

// unwrap takes an object out of the envelope in which the watch cache keeps it
// together with its encodings.
func unwrap(event watch.Event) (watch.Event, bool) {
	if envelope, ok := event.Object.(runtime.CacheableObject); ok {
		event.Object = envelope.GetObject()
	}
	return event, true
}

func internal(options metav1.ListOptions) (*internalversion.ListOptions, error) {
	var out internalversion.ListOptions
	return &out, internalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&options, &out, nil)
}

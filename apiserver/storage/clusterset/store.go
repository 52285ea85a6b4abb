// Package clusterset stores ClusterSets: what may be written, when one may be deleted, and
// what the server counts of the clusters in each.
package clusterset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/lock"
	"github.com/clusterregistry/operator/apiserver/storage/patch"
	base "github.com/clusterregistry/operator/apiserver/storage/strategy"
)

// REST serves ClusterSets.
type REST struct {
	*genericregistry.Store
	locks *lock.Locks
	// Members returns how many clusters are in a set, by etcd's latest state. It has to be
	// set before a set is deleted.
	Members func(ctx context.Context, set string) (int, error)
}

var (
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// ShortNames returns the names that kubectl accepts besides "clustersets".
func (*REST) ShortNames() []string { return []string{"crset"} }

// GetSingularName returns "clusterset".
func (*REST) GetSingularName() string { return "clusterset" }

// New returns the storage of ClusterSets. The policy is that of the garbage collector, if
// there is one.
func New(scheme *runtime.Scheme, options generic.RESTOptionsGetter, collection rest.GarbageCollectionPolicy) (*REST, error) {
	main := strategy{base.New(scheme, collection)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &clusterregistry.ClusterSet{} },
		NewListFunc:               func() runtime.Object { return &clusterregistry.ClusterSetList{} },
		DefaultQualifiedResource:  clusterregistry.Resource("clustersets"),
		SingularQualifiedResource: clusterregistry.Resource("clusterset"),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            columns,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options}); err != nil {
		return nil, fmt.Errorf("storage of %s: %w", store.DefaultQualifiedResource, err)
	}
	locks, err := lock.New(options)
	if err != nil {
		return nil, err
	}
	destroy := store.DestroyFunc
	store.DestroyFunc = func() {
		destroy()
		locks.Destroy()
	}
	return &REST{Store: store, locks: locks}, nil
}

// Update changes a ClusterSet or creates it.
func (r *REST) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.Store.Update(ctx, name, patch.Blame(object), create, update, forceCreate, options)
}

// lockOf is the name of the lock that those share who put clusters in a set, and that who
// deletes it has alone.
func lockOf(set string) string { return "clustersets/" + set }

// Share keeps a set from being deleted until the lock is released. It returns
// lock.ErrHeld while the set is about to be.
func (r *REST) Share(ctx context.Context, set string) (*lock.Lock, error) {
	return r.locks.Share(ctx, lockOf(set))
}

// Exists reports whether a set is there and is not being deleted, by etcd's latest state.
func (r *REST) Exists(ctx context.Context, set string) (bool, error) {
	object, err := r.Get(ctx, set, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return object.(*clusterregistry.ClusterSet).DeletionTimestamp == nil, nil
}

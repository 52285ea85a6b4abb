package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/lock"
	"github.com/clusterregistry/operator/apiserver/storage/patch"
	base "github.com/clusterregistry/operator/apiserver/storage/strategy"
)

// REST serves clusters.
type REST struct {
	*genericregistry.Store
	locks *lock.Locks
	sets  Sets
	guard Guard
}

var (
	_ rest.ShortNamesProvider   = &REST{}
	_ rest.SingularNameProvider = &REST{}
)

// ShortNames returns the names that kubectl accepts besides "clusters".
func (*REST) ShortNames() []string { return []string{"crc"} }

// GetSingularName returns "cluster".
func (*REST) GetSingularName() string { return "cluster" }

// New returns the storage of clusters and that of their status, on one store. The
// policy is that of the garbage collector, if there is one. The guard decides on what a
// write needs besides the permission to write; the sets may be nil where nothing is written.
func New(scheme *runtime.Scheme, options generic.RESTOptionsGetter, collection rest.GarbageCollectionPolicy, sets Sets, guard Guard) (*REST, *StatusREST, error) {
	main := strategy{base.New(scheme, collection)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &clusterregistry.Cluster{} },
		NewListFunc:               func() runtime.Object { return &clusterregistry.ClusterList{} },
		PredicateFunc:             match,
		DefaultQualifiedResource:  clusterregistry.Resource("clusters"),
		SingularQualifiedResource: clusterregistry.Resource("cluster"),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            convertor{},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attributes, Indexers: indexers()}); err != nil {
		return nil, nil, err
	}
	locks, err := lock.New(options)
	if err != nil {
		return nil, nil, err
	}
	destroy := store.DestroyFunc
	store.DestroyFunc = func() {
		destroy()
		locks.Destroy()
	}
	status := *store
	status.UpdateStrategy = statusStrategy{main}
	status.ResetFieldsStrategy = statusStrategy{main}
	guard.countFromZero()
	return &REST{store, locks, sets, guard}, &StatusREST{&status}, nil
}

// StatusREST serves the status of clusters.
type StatusREST struct{ store *genericregistry.Store }

var (
	_ rest.Patcher             = &StatusREST{}
	_ rest.ResetFieldsStrategy = &StatusREST{}
)

// New returns an empty cluster.
func (r *StatusREST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the store belongs to REST.
func (*StatusREST) Destroy() {}

// Get returns a cluster.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update changes the status of a cluster, and nothing else of it.
func (r *StatusREST) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, patch.Blame(object), create, update, false, options)
}

// GetResetFields names the fields that an apply to the status can't own.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable shows clusters as rows.
func (r *StatusREST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}

// Package heartbeat stores ClusterHeartbeats: each says when a reporter last had a sign of
// life of a cluster. The server sets all of one but its name, so that the clocks of reporters
// don't count, and removes it after its cluster.
//
// They can't be watched. With thousands of clusters, each watch would have an event for each
// of them in each of their periods; a reader that lists them once in a period learns the same
// for less. That also keeps the host cluster's garbage collector from following them.
package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/validation"
	"github.com/clusterregistry/operator/apiserver/storage/patch"
	base "github.com/clusterregistry/operator/apiserver/storage/strategy"
)

// Clusters are what heartbeats are of.
type Clusters interface {
	// Get returns a cluster: of the resource version "0" from a watch cache, and of none by
	// etcd's latest state.
	Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error)
	// List returns all of them, of a version in the same way.
	List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error)
}

// REST serves heartbeats.
type REST struct {
	// Store keeps them. It is no part of what is served, which has no watch.
	Store    *genericregistry.Store
	clusters Clusters
}

var (
	_ rest.Storage                      = &REST{}
	_ rest.Scoper                       = &REST{}
	_ rest.Lister                       = &REST{}
	_ rest.Patcher                      = &REST{}
	_ rest.Creater                      = &REST{} //nolint:misspell // its name
	_ rest.CreaterUpdater               = &REST{}
	_ rest.GracefulDeleter              = &REST{}
	_ rest.SingularNameProvider         = &REST{}
	_ rest.ShortNamesProvider           = &REST{}
	_ rest.ResetFieldsStrategy          = &REST{}
	_ rest.StorageVersionProvider       = &REST{}
	_ rest.CorruptObjectDeleterProvider = &REST{}
)

// Resource is what is served.
var Resource = clusterregistry.Resource("clusterheartbeats")

// New returns the storage of heartbeats. The clusters may be nil where nothing is written. No
// garbage collector follows what can't be watched, so that none is waited for.
func New(scheme *runtime.Scheme, options generic.RESTOptionsGetter, clusters Clusters) (*REST, error) {
	main := strategy{base.New(scheme, rest.Unsupported)}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &clusterregistry.ClusterHeartbeat{} },
		NewListFunc:               func() runtime.Object { return &clusterregistry.ClusterHeartbeatList{} },
		PredicateFunc:             match,
		DefaultQualifiedResource:  Resource,
		SingularQualifiedResource: clusterregistry.Resource("clusterheartbeat"),
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            columns,
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: attributes, Indexers: indexers()}); err != nil {
		return nil, fmt.Errorf("storage of %s: %w", Resource, err)
	}
	return &REST{store, clusters}, nil
}

// New returns an empty heartbeat.
func (r *REST) New() runtime.Object { return r.Store.New() }

// NewList returns an empty list of heartbeats.
func (r *REST) NewList() runtime.Object { return r.Store.NewList() }

// Destroy ends what the storage has opened.
func (r *REST) Destroy() { r.Store.Destroy() }

// NamespaceScoped is false.
func (*REST) NamespaceScoped() bool { return false }

// GetSingularName returns "clusterheartbeat".
func (*REST) GetSingularName() string { return "clusterheartbeat" }

// ShortNames returns the names that kubectl accepts besides "clusterheartbeats".
func (*REST) ShortNames() []string { return []string{"crhb"} }

// StorageVersion returns the version in which heartbeats are stored.
func (r *REST) StorageVersion() runtime.GroupVersioner { return r.Store.StorageVersion() }

// GetResetFields names the fields that no one can own.
func (r *REST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.Store.GetResetFields()
}

// ConvertToTable shows heartbeats as rows.
func (r *REST) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return r.Store.ConvertToTable(ctx, object, options)
}

// Get returns a heartbeat.
func (r *REST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.Store.Get(ctx, name, options)
}

// List returns the heartbeats that the options select.
func (r *REST) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	return r.Store.List(ctx, options)
}

// Create stores a new heartbeat.
func (r *REST) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if err := r.begin(ctx, object.(*clusterregistry.ClusterHeartbeat)); err != nil {
		return nil, err
	}
	return r.Store.Create(ctx, object, validate, options)
}

// Update renews a heartbeat or creates it. One of a former cluster is none.
func (r *REST) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	of := types.UID("")
	if known, is := object.(Of); is {
		object, of = known.UpdatedObjectInfo, known.UID
	}
	for {
		out, created, err := r.Store.Update(ctx, name, stamped{patch.Blame(object), r, of}, create, update, forceCreate, options)
		var left former
		if !errors.As(err, &left) {
			return out, created, err
		}
		if err := r.purge(ctx, left.beat); err != nil {
			return nil, false, err
		}
	}
}

// Delete deletes a heartbeat.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return r.Store.Delete(ctx, name, validate, options)
}

// GetCorruptObjDeleter returns what deletes heartbeats that can't be read.
func (r *REST) GetCorruptObjDeleter() rest.GracefulDeleter { return r.Store.GetCorruptObjDeleter() }

// Of is a change of a heartbeat of the cluster with a UID, which the caller has read from etcd.
type Of struct {
	rest.UpdatedObjectInfo
	UID types.UID
}

// stamped is what becomes of a heartbeat, as the server sets it: of the cluster with a UID, where
// it is known already.
type stamped struct {
	rest.UpdatedObjectInfo
	beats *REST
	of    types.UID
}

// former is the error of a heartbeat whose cluster is gone, while another has its name.
type former struct {
	beat *clusterregistry.ClusterHeartbeat
}

// Error says that.
func (f former) Error() string { return f.beat.Name + " is of another cluster, which had this name" }

// UpdatedObject returns what becomes of a heartbeat. Whose it is comes first: of another
// cluster's, a patch may tell what it has.
func (s stamped) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	stored := old.(*clusterregistry.ClusterHeartbeat)
	if stored.ResourceVersion != "" {
		cluster, err := s.beats.cluster(ctx, stored.ClusterName, stored.ClusterUID, s.of)
		switch {
		case err != nil:
			return nil, err
		case s.of != "" && cluster.UID != s.of:
			return nil, Missing(stored.ClusterName) // that of which the caller may write is gone
		case cluster.UID != stored.ClusterUID:
			return nil, former{stored.DeepCopy()}
		}
	}
	object, err := s.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err != nil {
		return nil, err
	}
	beat := object.(*clusterregistry.ClusterHeartbeat)
	if stored.ResourceVersion == "" {
		return beat, s.beats.begin(ctx, beat)
	}
	stamp(beat, stored.ClusterUID)
	return beat, nil
}

// stamp sets what the server alone sets. Times are of whole seconds, as they are stored: what
// is renewed more often is not written.
func stamp(beat *clusterregistry.ClusterHeartbeat, of types.UID) {
	beat.ClusterUID, beat.RenewTime = of, metav1.Now().Rfc3339Copy()
	beat.ClusterName, beat.Reporter = clusterregistry.HeartbeatOf(beat.Name)
}

// begin stamps a new heartbeat, unless its cluster has as many as reporters. They are counted
// in the watch cache: a few that come at once may pass.
func (r *REST) begin(ctx context.Context, beat *clusterregistry.ClusterHeartbeat) error {
	stamp(beat, "")
	if beat.ClusterName == "" {
		return nil // which is invalid
	}
	cluster, err := r.cluster(ctx, beat.ClusterName)
	if err != nil {
		return err
	}
	beat.ClusterUID = cluster.UID
	others, err := r.List(ctx, &internalversion.ListOptions{ResourceVersion: "0", FieldSelector: fields.OneTermEqualSelector(ClusterField, beat.ClusterName)})
	if err != nil {
		return err
	}
	if len(others.(*clusterregistry.ClusterHeartbeatList).Items) >= validation.MaxReporters {
		return apierrors.NewForbidden(Resource, beat.Name, fmt.Errorf("cluster %s has %d heartbeats, and can't have more", beat.ClusterName, validation.MaxReporters))
	}
	return nil
}

// cluster returns a cluster. One that is new, or another one than is known, may not be in the
// cache yet, or what is known may be behind it: etcd decides.
func (r *REST) cluster(ctx context.Context, name string, known ...types.UID) (*clusterregistry.Cluster, error) {
	object, err := r.clusters.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	differs := func(uid types.UID) bool { return uid != "" && object.(*clusterregistry.Cluster).UID != uid }
	if apierrors.IsNotFound(err) || err == nil && slices.ContainsFunc(known, differs) {
		object, err = r.clusters.Get(ctx, name, &metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, Missing(name)
	}
	if err != nil {
		return nil, err
	}
	return object.(*clusterregistry.Cluster), nil
}

// Missing is the error of a heartbeat of a cluster that does not exist.
func Missing(cluster string) error {
	return apierrors.NewNotFound(clusterregistry.Resource("clusters"), cluster)
}

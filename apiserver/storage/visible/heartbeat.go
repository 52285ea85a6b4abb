package visible

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/heartbeat"
)

// HeartbeatREST serves the heartbeats of the clusters that a caller sees. Who writes one
// needs what it takes to write the status of its cluster.
type HeartbeatREST struct {
	*heartbeat.REST
	clusters *REST
}

var (
	_ rest.Lister                       = &HeartbeatREST{}
	_ rest.Patcher                      = &HeartbeatREST{}
	_ rest.Creater                      = &HeartbeatREST{} //nolint:misspell // its name
	_ rest.GracefulDeleter              = &HeartbeatREST{}
	_ rest.CorruptObjectDeleterProvider = &HeartbeatREST{}
)

// Heartbeats returns the storage of heartbeats as a policy shows it.
func (r *REST) Heartbeats(beats *heartbeat.REST) *HeartbeatREST { return &HeartbeatREST{beats, r} }

// Get returns a heartbeat of a cluster that the caller sees.
func (r *HeartbeatREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	view, err := r.clusters.policy.View(ctx)
	if err != nil {
		return nil, err
	}
	if view.All {
		return r.REST.Get(ctx, name, options)
	}
	// The cluster comes second: if it moves out of sight meanwhile, nothing is shown.
	object, err := r.REST.Get(ctx, name, &metav1.GetOptions{})
	seen, lookErr := r.seen(ctx, name)
	if lookErr != nil {
		return nil, lookErr
	}
	if err == nil && object.(*clusterregistry.ClusterHeartbeat).ClusterUID != seen.UID {
		err = noHeartbeat(name) // it is of another cluster, which had this name
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

// seen returns the cluster of a heartbeat, if the caller sees it.
func (r *HeartbeatREST) seen(ctx context.Context, name string) (*clusterregistry.Cluster, error) {
	cluster, _ := clusterregistry.HeartbeatOf(name)
	if cluster == "" {
		return nil, noHeartbeat(name)
	}
	object, err := r.clusters.Get(ctx, cluster, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, noHeartbeat(name)
	}
	if err != nil {
		return nil, err
	}
	return object.(*clusterregistry.Cluster), nil
}

func noHeartbeat(name string) error { return apierrors.NewNotFound(heartbeat.Resource, name) }

// List returns the heartbeats of the clusters that the caller sees: all at once, whatever the
// limit is, unless it sees all clusters. The clusters are listed after the heartbeats, so that
// what moves out of sight meanwhile is left out.
func (r *HeartbeatREST) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	view, err := r.clusters.policy.View(ctx)
	if err != nil {
		return nil, err
	}
	if view.All {
		return r.REST.List(ctx, options)
	}
	if options == nil {
		options = &internalversion.ListOptions{}
	}
	if options.Continue != "" || isExact(options) {
		return nil, expired()
	}
	options = options.DeepCopy()
	options.Limit = 0
	object, err := r.REST.List(ctx, options)
	if err != nil {
		return nil, nameless(view, err)
	}
	seen, err := r.shown(ctx, options.FieldSelector)
	if err != nil {
		return nil, err
	}
	list := object.(*clusterregistry.ClusterHeartbeatList)
	out := &clusterregistry.ClusterHeartbeatList{ListMeta: metav1.ListMeta{ResourceVersion: list.ResourceVersion}}
	for _, beat := range list.Items {
		if uid, is := seen[beat.ClusterName]; is && uid == beat.ClusterUID {
			out.Items = append(out.Items, beat)
		}
	}
	return out, nil
}

// shown returns the clusters that the caller sees, of those that a field selector may select.
func (r *HeartbeatREST) shown(ctx context.Context, selector fields.Selector) (map[string]types.UID, error) {
	seen := map[string]types.UID{}
	if selector != nil {
		if name, exact := selector.RequiresExactMatch(heartbeat.ClusterField); exact && name != "" {
			object, err := r.clusters.Get(ctx, name, &metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return seen, nil
			}
			if err != nil {
				return nil, err
			}
			seen[name] = object.(*clusterregistry.Cluster).UID
			return seen, nil
		}
	}
	clusters, err := r.clusters.List(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, cluster := range clusters.(*clusterregistry.ClusterList).Items {
		seen[cluster.Name] = cluster.UID
	}
	return seen, nil
}

// may returns an error when the caller may not write the heartbeat of a name, and else the UID
// of its cluster.
func (r *HeartbeatREST) may(ctx context.Context, name string) (types.UID, error) {
	cluster, _ := clusterregistry.HeartbeatOf(name)
	if cluster == "" {
		return "", nil // there is none, nor can there be
	}
	uid := types.UID("")
	stored, err := r.clusters.REST.Get(ctx, cluster, &metav1.GetOptions{})
	if err == nil {
		// As a write of its status does, which is never created or deleted.
		verb := update
		if verbOf(ctx) == patching {
			verb = patching
		}
		uid, err = stored.(*clusterregistry.Cluster).UID, r.clusters.may(ctx, verb, stored.(*clusterregistry.Cluster))
	} else {
		err = r.clusters.unread(ctx, cluster, err)
	}
	if apierrors.IsNotFound(plain(err)) {
		return "", heartbeat.Missing(cluster)
	}
	return uid, plain(err)
}

// Create stores a new heartbeat.
func (r *HeartbeatREST) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if _, err := r.may(ctx, object.(*clusterregistry.ClusterHeartbeat).Name); err != nil {
		return nil, err
	}
	return r.REST.Create(ctx, object, validate, options)
}

// Update renews a heartbeat or creates it.
func (r *HeartbeatREST) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	of, err := r.may(ctx, name)
	if err != nil {
		return nil, false, err
	}
	return r.REST.Update(ctx, name, heartbeat.Of{UpdatedObjectInfo: object, UID: of}, create, update, forceCreate, options)
}

// Delete deletes a heartbeat.
func (r *HeartbeatREST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	of, err := r.mayDelete(ctx, name)
	if err != nil {
		return nil, false, err
	}
	return r.REST.Delete(ctx, name, func(ctx context.Context, object runtime.Object) error {
		if of != "" && object.(*clusterregistry.ClusterHeartbeat).ClusterUID != of {
			return noHeartbeat(name)
		}
		return validate(ctx, object)
	}, options)
}

// mayDelete returns an error when the caller may not delete the heartbeat of a name, and else
// the UID of the cluster that it has to be of. Who sees all clusters may delete that of any,
// also of one that is gone: there is no UID then.
func (r *HeartbeatREST) mayDelete(ctx context.Context, name string) (types.UID, error) {
	uid, err := r.may(ctx, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	view, failed := r.clusters.policy.View(ctx)
	switch {
	case failed != nil:
		return "", failed
	case view.All:
		return "", nil
	case err != nil:
		return "", noHeartbeat(name)
	}
	return uid, nil
}

// GetCorruptObjDeleter returns what deletes heartbeats that can't be read.
func (r *HeartbeatREST) GetCorruptObjDeleter() rest.GracefulDeleter {
	below := r.REST.GetCorruptObjDeleter()
	if below == nil {
		return nil
	}
	return corruptHeartbeat{below, r}
}

// corruptHeartbeat deletes heartbeats that can't be read: whose they are, their names say.
type corruptHeartbeat struct {
	rest.GracefulDeleter
	beats *HeartbeatREST
}

// Delete deletes one.
func (c corruptHeartbeat) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if _, err := c.beats.mayDelete(ctx, name); err != nil {
		return nil, false, err
	}
	return c.GracefulDeleter.Delete(ctx, name, validate, options)
}

package cluster

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/lock"
)

// Create stores a new cluster. No other request, of whatever server, can give
// the same id to another cluster meanwhile.
func (r *REST) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	claim := &claim{REST: r, dryRun: len(options.DryRun) > 0}
	out, err := r.Store.Create(ctx, object, claim.onCreate(validate), options)
	claim.end(ctx, err)
	return out, err
}

// Update changes a cluster or creates it, with Create's promise about ids.
func (r *REST) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	claim := &claim{REST: r, dryRun: len(options.DryRun) > 0}
	out, created, err := r.Store.Update(ctx, name, object, claim.onCreate(create), claim.onUpdate(update), forceCreate, options)
	claim.end(ctx, err)
	return out, created, err
}

// claim is one request's claim to an id, while it writes.
type claim struct {
	*REST
	dryRun bool

	id   string
	lock *lock.Lock
}

// onCreate claims the id of a cluster that is about to be created, after all
// others have agreed to it.
func (c *claim) onCreate(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, object runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, object); err != nil {
				return err
			}
		}
		return c.take(ctx, object.(*clusterregistry.Cluster))
	}
}

// onUpdate claims the id that a cluster is about to be given.
func (c *claim) onUpdate(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, object, old runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, object, old); err != nil {
				return err
			}
		}
		cluster := object.(*clusterregistry.Cluster)
		if cluster.Spec.ID == old.(*clusterregistry.Cluster).Spec.ID {
			return nil
		}
		return c.take(ctx, cluster)
	}
}

// take claims the id of a cluster, unless another cluster has it. Who writes in
// several attempts claims it once.
func (c *claim) take(ctx context.Context, cluster *clusterregistry.Cluster) error {
	id := cluster.Spec.ID
	if id == "" || c.lock != nil && c.id == id {
		return nil
	}
	c.end(ctx, nil)
	// A dry run asks who has the id, and leaves nothing in etcd.
	if !c.dryRun {
		held, err := c.locks.Take(ctx, id)
		if errors.Is(err, lock.ErrHeld) {
			return apierrors.NewConflict(clusterregistry.Resource("clusters"), cluster.Name, errors.New("another request is giving its spec.id to a cluster; try again, for two minutes at most"))
		}
		if err != nil {
			return err
		}
		c.id, c.lock = id, held
	}
	err := c.free(ctx, cluster)
	if err != nil {
		c.end(ctx, nil)
	}
	return err
}

// free returns an error when another cluster has the id. A list without a
// version is as new as etcd, wherever it is served from.
func (c *claim) free(ctx context.Context, cluster *clusterregistry.Cluster) error {
	object, err := c.ListPredicate(ctx, match(labels.Everything(), fields.OneTermEqualSelector(idField, cluster.Spec.ID)), &internalversion.ListOptions{})
	if err != nil {
		return err
	}
	for _, other := range object.(*clusterregistry.ClusterList).Items {
		if other.UID != cluster.UID {
			taken := field.Duplicate(field.NewPath("spec", "id"), cluster.Spec.ID)
			taken.Detail = "another cluster has it; kubectl get crc --field-selector=spec.id=" + cluster.Spec.ID + " shows which"
			return apierrors.NewInvalid(clusterregistry.SchemeGroupVersion.WithKind("Cluster").GroupKind(), cluster.Name, field.ErrorList{taken})
		}
	}
	return nil
}

// end gives the claim up, unless the write may still be applied: then the lock
// goes with its lease.
func (c *claim) end(ctx context.Context, err error) {
	if c.lock == nil {
		return
	}
	held := c.lock
	c.lock = nil
	if err == nil || isAnswer(err) {
		held.Release(ctx)
	}
}

// isAnswer reports whether an error says that nothing was written and nothing
// will be.
func isAnswer(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

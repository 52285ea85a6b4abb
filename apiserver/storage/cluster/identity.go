package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/lock"
)

// Create stores a new cluster. No other request, of whatever server, can give
// the same id to another cluster meanwhile.
func (r *REST) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	claim := &claim{REST: r, dryRun: len(options.DryRun) > 0}
	out, err := r.Store.Create(ctx, object, claim.onCreate(validate), options)
	return out, claim.settle(ctx, out, true, err)
}

// Update changes a cluster or creates it, with Create's promise about ids.
func (r *REST) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	claim := &claim{REST: r, dryRun: len(options.DryRun) > 0}
	out, created, err := r.Store.Update(ctx, name, object, claim.onCreate(create), claim.onUpdate(update), forceCreate, options)
	return out, created, claim.settle(ctx, out, created, err)
}

// patience is how long a request whose lock was lost may take to look again.
const patience = 10 * time.Second

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
	c.drop(ctx)
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
		c.drop(ctx)
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

// drop gives the claim up before anything was written.
func (c *claim) drop(ctx context.Context) {
	if c.lock != nil {
		c.lock.Release(ctx)
		c.lock = nil
	}
}

// settle gives the claim up when the write has ended, and returns how that did.
// When the write may still be applied, the lock goes with its lease.
func (c *claim) settle(ctx context.Context, written runtime.Object, created bool, err error) error {
	if c.lock == nil || err != nil && !isAnswer(err) {
		return err
	}
	held := c.lock.Release(ctx)
	c.lock = nil
	if held || err != nil {
		return err
	}
	return c.again(ctx, written.(*clusterregistry.Cluster), created)
}

// again looks once more whether the id is another's, after a write during which
// the lock was lost. Who takes the lock from now on finds what was written; so
// does this request what others have written, and then takes its own back, of
// which no client was told yet. A look that fails takes nothing back: most likely no
// other has the id, and clients may have seen the cluster with it.
func (c *claim) again(ctx context.Context, written *clusterregistry.Cluster, created bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := c.take(ctx, written)
	if err == nil {
		c.drop(ctx)
		return nil
	}
	if !apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueDuplicate) {
		return apierrors.NewTimeoutError(fmt.Sprintf("cluster %s was written with its spec.id, but whether another cluster was given the same meanwhile is not known: %v; kubectl get crc --field-selector=spec.id=%s shows it", written.Name, err, written.Spec.ID), 0)
	}
	if undone := c.undo(ctx, written, created); undone != nil {
		return fmt.Errorf("%w; and the cluster could not be set back, so that two may have that id: %w", err, undone)
	}
	return err
}

// undo takes back that a cluster was given an id, or the whole cluster if it was
// created with it.
func (c *claim) undo(ctx context.Context, written *clusterregistry.Cluster, created bool) error {
	key, err := c.KeyFunc(ctx, written.Name)
	if err != nil {
		return err
	}
	mine := storage.NewUIDPreconditions(string(written.UID))
	if created {
		err = c.Storage.Storage.Delete(ctx, key, &clusterregistry.Cluster{}, mine, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	} else {
		err = c.Storage.Storage.GuaranteedUpdate(ctx, key, &clusterregistry.Cluster{}, false, mine, storage.SimpleUpdate(func(stored runtime.Object) (runtime.Object, error) {
			stored.(*clusterregistry.Cluster).Spec.ID = ""
			return stored, nil
		}), nil)
	}
	if storage.IsNotFound(err) || storage.IsInvalidObj(err) {
		return nil // another has deleted it
	}
	return err
}

// isAnswer reports whether an error says that nothing was written and nothing
// will be.
func isAnswer(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

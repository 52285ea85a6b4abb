package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/lock"
	"github.com/clusterregistry/operator/apiserver/storage/patch"
)

// Create stores a new cluster. No other request, of whatever server, can give the same id
// to another cluster meanwhile, nor delete the set that it is put in.
func (r *REST) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	claim := r.claim(options.DryRun)
	out, err := r.Store.Create(ctx, object, claim.onCreate(validate), options)
	return out, claim.settle(ctx, out, true, err)
}

// Update changes a cluster or creates it, with Create's promises.
func (r *REST) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	claim := r.claim(options.DryRun)
	out, created, err := r.Store.Update(ctx, name, patch.Blame(object), claim.onCreate(create), claim.onUpdate(update), forceCreate, options)
	return out, created, claim.settle(ctx, out, created, err)
}

// patience is how long a request whose lock was lost may take to look again.
const patience = 10 * time.Second

// claim is what one request claims for a cluster, while it writes.
type claim struct {
	*REST
	dryRun  bool
	reviews *reviews
	id, set hold
	// proposed says that the store was let write, once at least.
	proposed bool
}

// hold is a claim to one value of a cluster, with the lock that protects it.
type hold struct {
	rule  *rule
	value string
	lock  *lock.Lock
}

// rule says what may be claimed.
type rule struct {
	// of returns the value that a cluster claims; empty claims nothing.
	of func(*clusterregistry.Cluster) string
	// lock takes the lock of a value.
	lock func(ctx context.Context, value string) (*lock.Lock, error)
	// check returns an error when a cluster may not have its value. A reason of Invalid
	// says that it may not, any other that this is not known. The lock is held; nil is that
	// of a dry run.
	check func(ctx context.Context, cluster *clusterregistry.Cluster, held *lock.Lock) error
	// clear takes the value from a cluster.
	clear func(*clusterregistry.Cluster)
	// wait says what another request does that holds the lock.
	wait string
}

func (r *REST) claim(dryRun []string) *claim {
	return &claim{REST: r, dryRun: len(dryRun) > 0, reviews: r.guard.reviews(), id: hold{rule: r.idRule()}, set: hold{rule: r.setRule()}}
}

func (c *claim) holds() []*hold { return []*hold{&c.id, &c.set} }

// onCreate makes the claims of a cluster that is about to be created, after all others
// have agreed to it. The guard comes first: who may not change what it guards learns
// nothing of what admission says, and takes no lock. It sees what mutating admission has
// made of the cluster, and the name that was generated.
func (c *claim) onCreate(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, object runtime.Object) error {
		if err := c.reviews.check(ctx, object.(*clusterregistry.Cluster), &clusterregistry.Cluster{}); err != nil {
			return err
		}
		if validate != nil {
			if err := validate(ctx, object); err != nil {
				return err
			}
		}
		return c.change(ctx, object.(*clusterregistry.Cluster), &clusterregistry.Cluster{})
	}
}

// onUpdate makes the claims of a cluster that is about to be changed, in onCreate's order.
func (c *claim) onUpdate(validate rest.ValidateObjectUpdateFunc) rest.ValidateObjectUpdateFunc {
	return func(ctx context.Context, object, old runtime.Object) error {
		if err := c.reviews.check(ctx, object.(*clusterregistry.Cluster), old.(*clusterregistry.Cluster)); err != nil {
			return err
		}
		if validate != nil {
			if err := validate(ctx, object, old); err != nil {
				return err
			}
		}
		return c.change(ctx, object.(*clusterregistry.Cluster), old.(*clusterregistry.Cluster))
	}
}

// change makes the claims to what a cluster did not have before.
func (c *claim) change(ctx context.Context, cluster, old *clusterregistry.Cluster) error {
	changed := slices.DeleteFunc(c.holds(), func(h *hold) bool { return h.rule.of(cluster) == h.rule.of(old) })
	errs := make([]error, len(changed))
	together(changed, func(i int, h *hold) { errs[i] = c.take(ctx, h, cluster) })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	c.proposed = true
	return nil
}

// together does something with claims at a time: each waits for etcd several times, and none
// for another.
func together(holds []*hold, do func(i int, h *hold)) {
	var all sync.WaitGroup
	for i, h := range holds {
		all.Go(func() { do(i, h) })
	}
	all.Wait()
}

// take claims the value that a cluster is given, unless it may not have it. Who writes in
// several attempts claims it once.
func (c *claim) take(ctx context.Context, h *hold, cluster *clusterregistry.Cluster) error {
	value := h.rule.of(cluster)
	if value == "" || h.lock != nil && h.value == value {
		return nil
	}
	h.drop(ctx)
	// A dry run asks whether the cluster may have it, and leaves nothing in etcd.
	if !c.dryRun {
		held, err := h.rule.lock(ctx, value)
		if errors.Is(err, lock.ErrHeld) {
			return apierrors.NewConflict(clusterregistry.Resource("clusters"), cluster.Name, errors.New("another request is "+h.rule.wait+"; try again, for two minutes at most"))
		}
		if err != nil {
			return err
		}
		h.value, h.lock = value, held
	}
	err := h.rule.check(ctx, cluster, h.lock)
	if err != nil {
		h.drop(ctx)
	}
	return err
}

// drop gives a claim up before anything was written.
func (h *hold) drop(ctx context.Context) {
	if h.lock != nil {
		h.lock.Release(ctx)
		h.lock = nil
	}
}

// settle gives the claims up when the write has ended, and returns how that did. When the
// write may still be applied, the locks go with their leases.
func (c *claim) settle(ctx context.Context, written runtime.Object, created bool, err error) error {
	if err != nil && c.proposed && !isAnswer(err) {
		return err
	}
	taken := slices.DeleteFunc(c.holds(), func(h *hold) bool { return h.lock == nil })
	held := make([]bool, len(taken))
	together(taken, func(i int, h *hold) {
		held[i] = h.lock.Release(ctx)
		h.lock = nil
	})
	for i, h := range taken {
		if !held[i] && err == nil {
			err = c.again(ctx, h, written.(*clusterregistry.Cluster), created)
		}
	}
	return err
}

// again looks once more whether a cluster may have its value, after a write during which
// the lock was lost. Who takes the lock from now on finds what was written; so does this
// request what others have written, and then takes its own back, of which no client was
// told yet. A look that fails takes nothing back: most likely the cluster may have it,
// and clients may have seen it.
func (c *claim) again(ctx context.Context, h *hold, written *clusterregistry.Cluster, created bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := c.take(ctx, h, written)
	if err == nil {
		h.drop(ctx)
		return nil
	}
	if !apierrors.IsInvalid(err) {
		return apierrors.NewTimeoutError(fmt.Sprintf("cluster %s was written, but whether another request was %s meanwhile is not known: %v; kubectl get crc %s -o yaml shows what is stored", written.Name, h.rule.wait, err, written.Name), 0)
	}
	if undone := c.undo(ctx, h, written, created); undone != nil {
		return fmt.Errorf("%w; and the cluster could not be set back: %w", err, undone)
	}
	return err
}

// undo takes back that a cluster was given a value, or the whole cluster if it was
// created with it.
func (c *claim) undo(ctx context.Context, h *hold, written *clusterregistry.Cluster, created bool) error {
	key, err := c.KeyFunc(ctx, written.Name)
	if err != nil {
		return err
	}
	mine := storage.NewUIDPreconditions(string(written.UID))
	if created {
		err = c.Storage.Storage.Delete(ctx, key, &clusterregistry.Cluster{}, mine, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	} else {
		err = c.Storage.Storage.GuaranteedUpdate(ctx, key, &clusterregistry.Cluster{}, false, mine, storage.SimpleUpdate(func(stored runtime.Object) (runtime.Object, error) {
			if cluster := stored.(*clusterregistry.Cluster); h.rule.of(cluster) == h.rule.of(written) {
				h.rule.clear(cluster)
			}
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

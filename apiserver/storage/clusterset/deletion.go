package clusterset

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/storage/lock"
)

// patience is how long a deletion whose lock was lost may take to look again.
const patience = 10 * time.Second

// Delete deletes a set that no cluster is in. Meanwhile no request, of whatever server,
// can put one in it.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	var set *clusterregistry.ClusterSet
	unused := func(ctx context.Context, object runtime.Object) error {
		if validate != nil {
			if err := validate(ctx, object); err != nil {
				return err
			}
		}
		set = object.(*clusterregistry.ClusterSet)
		return r.unused(ctx, set)
	}
	if len(options.DryRun) > 0 {
		return r.Store.Delete(ctx, name, unused, options)
	}
	held, err := r.locks.Exclude(ctx, lockOf(name))
	if errors.Is(err, lock.ErrHeld) {
		return nil, false, apierrors.NewConflict(clusterregistry.Resource("clustersets"), name, errors.New("another request is putting a cluster in it, or is deleting it; try again, for two minutes at most"))
	}
	if err != nil {
		return nil, false, err
	}
	out, gone, err := r.Store.Delete(ctx, name, unused, options)
	if !held.Release(ctx) && err == nil && gone && set != nil {
		err = r.again(ctx, set)
	}
	return out, gone, err
}

// unused returns an error when clusters are in a set.
func (r *REST) unused(ctx context.Context, set *clusterregistry.ClusterSet) error {
	members, err := r.Members(ctx, set.Name)
	if err != nil {
		return fmt.Errorf("count the clusters in ClusterSet %s: %w", set.Name, err)
	}
	if members == 0 {
		return nil
	}
	clusters := fmt.Sprintf("%d clusters are", members)
	if members == 1 {
		clusters = "1 cluster is"
	}
	return apierrors.NewConflict(clusterregistry.Resource("clustersets"), set.Name, fmt.Errorf("%s in it; put them in another set or in none first: kubectl get crc -l %s=%s lists them", clusters, clusterregistry.ClusterSetLabel, set.Name))
}

// again looks once more for clusters in a set, after a deletion during which the lock was
// lost. If there are any, it is brought back, with its UID. Who finds it gone meanwhile
// puts no cluster in it.
func (r *REST) again(ctx context.Context, set *clusterregistry.ClusterSet) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	used := r.unused(ctx, set)
	if used == nil {
		return nil
	}
	key, err := r.KeyFunc(ctx, set.Name)
	if err != nil {
		return err
	}
	back := set.DeepCopy()
	back.ResourceVersion, back.DeletionTimestamp, back.DeletionGracePeriodSeconds = "", nil, nil
	if err := r.Storage.Storage.Create(ctx, key, back, nil, 0); err != nil && !storage.IsExist(err) {
		return fmt.Errorf("%w; and the set, which was deleted already, could not be brought back, so create it again: %w", used, err)
	}
	return used
}

// DeleteCollection deletes the sets that options select, one after the other, until one
// can't be deleted. The store's own would pass Delete by.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, selected *internalversion.ListOptions) (runtime.Object, error) {
	object, err := r.List(ctx, selected)
	if err != nil {
		return nil, err
	}
	for _, set := range object.(*clusterregistry.ClusterSetList).Items {
		if _, _, err := r.Delete(ctx, set.Name, validate, options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return object, nil
}

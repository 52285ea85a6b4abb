package visible

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// Create stores a new cluster in a set that the caller may create clusters in.
func (r *REST) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	out, err := r.REST.Create(ctx, object, r.creating(validate), options)
	if !apierrors.IsAlreadyExists(err) {
		return out, r.written(ctx, err)
	}
	// The store's error says whether the other is being deleted.
	name := object.(*clusterregistry.Cluster).Name
	if _, lookErr := r.Get(ctx, name, &metav1.GetOptions{}); lookErr != nil && name != "" {
		return nil, taken(name)
	}
	return nil, err
}

func taken(name string) error {
	return apierrors.NewAlreadyExists(clusterregistry.Resource("clusters"), name)
}

// creating adds to what a new cluster has to pass that the caller may create it in its set,
// before all else: who may not learns nothing of what admission says.
func (r *REST) creating(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return r.checked(validate, func(ctx context.Context, c *clusterregistry.Cluster) error { return r.allowed(ctx, create, c) })
}

// deleting adds to what the deletion of a cluster has to pass that the caller may delete it.
func (r *REST) deleting(validate rest.ValidateObjectFunc, verb string) rest.ValidateObjectFunc {
	return r.checked(validate, func(ctx context.Context, c *clusterregistry.Cluster) error { return r.may(ctx, verb, c) })
}

// checked has a check come before a validation, if there is one.
func (*REST) checked(validate rest.ValidateObjectFunc, check func(context.Context, *clusterregistry.Cluster) error) rest.ValidateObjectFunc {
	return func(ctx context.Context, object runtime.Object) error {
		if err := check(ctx, object.(*clusterregistry.Cluster)); err != nil || validate == nil {
			return err
		}
		return validate(ctx, object)
	}
}

// Update changes a cluster that the caller sees, or creates one. For one that it does not
// see, all goes as for one that does not exist, until its name turns out to be taken.
func (r *REST) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	create = r.creating(create)
	judged := &judged{UpdatedObjectInfo: object, clusters: r}
	out, created, err := r.REST.Update(ctx, name, judged, create, update, forceCreate, options)
	if err = r.unjudged(ctx, name, judged, err); !isHidden(err) {
		return out, created, r.written(ctx, err)
	}
	if _, _, err := r.Absent().Update(ctx, name, object, create, update, forceCreate, options); err != nil {
		return nil, false, r.written(ctx, err)
	}
	return nil, false, taken(name) // a dry run has come to its end
}

// Update changes the status of a cluster that the caller sees.
func (r *StatusREST) Update(ctx context.Context, name string, object rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	judged := &judged{UpdatedObjectInfo: object, clusters: r.clusters}
	out, created, err := r.StatusREST.Update(ctx, name, judged, create, update, forceCreate, options)
	return out, created, plain(r.clusters.unjudged(ctx, name, judged, err))
}

// judged is what becomes of a cluster, once it is known that the caller may change it: by
// the cluster as it is stored when it is changed, and before admission learns of it.
type judged struct {
	rest.UpdatedObjectInfo
	clusters *REST
	// done says that the stored cluster was judged.
	done bool
}

// UpdatedObject returns what becomes of a cluster.
func (j *judged) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	j.done = true
	var err error
	if stored := old.(*clusterregistry.Cluster); stored.ResourceVersion != "" {
		err = j.clusters.may(ctx, verbOf(ctx), stored)
	} else {
		_, err = j.clusters.policy.View(ctx) // see absent
	}
	if err != nil {
		return nil, err
	}
	return j.UpdatedObjectInfo.UpdatedObject(ctx, old)
}

// unjudged returns the error of an update, unless that tells of a cluster that the caller
// may not change: the store looks at preconditions, such as a UID, before all else.
func (r *REST) unjudged(ctx context.Context, name string, j *judged, err error) error {
	if err == nil || j.done {
		return err
	}
	stored, lookErr := r.REST.Get(ctx, name, &metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(lookErr) && apierrors.IsConflict(err):
		// It may be gone since, and the error has its UID.
		return r.absent(ctx, hidden{notFound(name)})
	case apierrors.IsNotFound(lookErr):
		return r.absent(ctx, err)
	case lookErr != nil:
		return r.unread(ctx, name, lookErr)
	}
	if judgement := r.may(ctx, verbOf(ctx), stored.(*clusterregistry.Cluster)); judgement != nil {
		return judgement
	}
	return err
}

// Delete deletes a cluster that the caller sees and may delete.
func (r *REST) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	// The store looks at preconditions before it lets the stored cluster be judged.
	stored, err := r.REST.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, plain(r.unread(ctx, name, err))
	}
	if err := r.may(ctx, deletion, stored.(*clusterregistry.Cluster)); err != nil {
		return nil, false, plain(err)
	}
	out, gone, err := r.REST.Delete(ctx, name, r.deleting(validate, deletion), options)
	return out, gone, plain(err)
}

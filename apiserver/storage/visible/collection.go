package visible

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// DeleteCollection deletes the clusters that the caller sees and that the options select.
// If it may not delete all of them, none is. One that is moved meanwhile is judged where
// it is when it is deleted.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, selected *internalversion.ListOptions) (runtime.Object, error) {
	view, err := r.policy.View(ctx)
	if err != nil {
		return nil, err
	}
	if selected == nil {
		selected = &internalversion.ListOptions{}
	}
	list, err := r.page(ctx, view, selected)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if err := r.allowed(ctx, deleteCollection, &list.Items[i]); err != nil {
			return nil, err
		}
	}
	out, err := r.through(view).DeleteCollection(ctx, r.deleting(validate, deleteCollection), options, selected)
	if deleted, is := out.(*clusterregistry.ClusterList); is && err == nil {
		deleted.Continue = list.Continue // the store's own is of clusters that are not seen, too
	}
	return out, plain(nameless(view, err))
}

// GetCorruptObjDeleter returns what deletes clusters that can't be read.
func (r *REST) GetCorruptObjDeleter() rest.GracefulDeleter {
	below := r.REST.GetCorruptObjDeleter()
	if below == nil {
		return nil
	}
	return corrupt{below, r}
}

// corrupt deletes clusters that can't be read, for who may delete all: no one can say in
// which set they are. To others there are none.
type corrupt struct {
	rest.GracefulDeleter
	clusters *REST
}

// Delete deletes one.
func (c corrupt) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	unread := &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.clusters.may(ctx, deletion, unread); err != nil {
		return nil, false, plain(err)
	}
	return c.GracefulDeleter.Delete(ctx, name, validate, options)
}

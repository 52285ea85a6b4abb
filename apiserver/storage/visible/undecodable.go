package visible

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apiserver/visibility"
)

// unread returns the error of reading a cluster. One that can't be decoded is for those who
// see all clusters, since no one can say in which set it is. To others there is none.
func (r *REST) unread(ctx context.Context, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return r.absent(ctx, err)
	}
	// Of the errors of a read this kind alone can be that, and etcd is not asked again when it
	// has not answered.
	if !apierrors.IsInternalError(err) {
		return err
	}
	key, keyErr := r.KeyFunc(ctx, name)
	if keyErr != nil || !storage.IsCorruptObject(r.Storage.Get(ctx, key, storage.GetOptions{}, r.NewFunc())) {
		return err
	}
	if judgement := r.may(ctx, get, &clusterregistry.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}); judgement != nil {
		return judgement
	}
	return err
}

// notReady is what the watch cache says while it can't be filled, before the reason.
const notReady = "storage is (re)initializing"

// nameless returns the error of something that goes by all clusters, for who has a view: that
// it can't be done, without the names of those that can't be decoded.
func nameless(of visibility.View, err error) error {
	switch {
	case of.All:
		return err
	case apierrors.IsStoreReadError(err):
		return apierrors.NewInternalError(errors.New("there are stored clusters that can't be decoded, and it is not known in which ClusterSet they are; someone who sees all clusters is told which"))
	case apierrors.IsTooManyRequests(err) && strings.Contains(err.Error(), notReady):
		seconds, _ := apierrors.SuggestsClientDelay(err)
		return apierrors.NewTooManyRequests(notReady, seconds)
	}
	return err
}

// written returns the error of a write, which may have gone by all clusters, as by their ids.
func (r *REST) written(ctx context.Context, err error) error {
	if !apierrors.IsStoreReadError(err) {
		return err
	}
	view, unknown := r.policy.View(ctx)
	if unknown != nil {
		return unknown
	}
	return nameless(view, err)
}

package hostcluster

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// ErrDeleted is the error of waiting for an object that is gone.
var ErrDeleted = errors.New("was deleted while it was waited for")

// again is when to ask again where a change can't be waited for.
const again = 5 * time.Second

// Next waits until an object is another than it was, and returns it; nil when it could not be
// read, or the context has ended. The error is ErrDeleted, also where another object has taken
// the name.
func Next(ctx context.Context, client dynamic.ResourceInterface, was metav1.Object) (*unstructured.Unstructured, error) {
	watcher, err := client.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", was.GetName()).String(), ResourceVersion: was.GetResourceVersion(),
	})
	if err == nil {
		defer watcher.Stop()
		select {
		case <-ctx.Done():
		case event, open := <-watcher.ResultChan():
			object, is := event.Object.(*unstructured.Unstructured)
			switch {
			case open && event.Type == watch.Deleted:
				return nil, ErrDeleted
			case open && is:
				return object, nil
			}
		}
	}
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	object, err := client.Get(ctx, was.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && object.GetUID() != was.GetUID():
		return nil, ErrDeleted
	case err != nil:
		return nil, nil //nolint:nilnil // it is asked again
	}
	return object, nil
}

// Package inprocess lets parts of the server follow what it stores as clients do, not
// through the API: what decides on requests can't depend on one.
package inprocess

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/tools/cache"
)

// ListWatch reads the objects of a storage. They are shared with its caches, and must not
// be changed.
func ListWatch(storage rest.StandardStorage) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			in, err := internal(options)
			if err != nil {
				return nil, err
			}
			return storage.List(ctx, in)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			in, err := internal(options)
			if err != nil {
				return nil, err
			}
			events, err := storage.Watch(ctx, in)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, unwrap), nil
		},
	}
}

// unwrap takes an object out of the envelope in which the watch cache keeps it
// together with its encodings.
func unwrap(event watch.Event) (watch.Event, bool) {
	if envelope, ok := event.Object.(runtime.CacheableObject); ok {
		event.Object = envelope.GetObject()
	}
	return event, true
}

func internal(options metav1.ListOptions) (*internalversion.ListOptions, error) {
	var out internalversion.ListOptions
	return &out, internalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&options, &out, nil)
}

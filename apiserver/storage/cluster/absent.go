package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// Absent returns the storage as it is to who may not know of a cluster: its name is taken,
// and there is nothing to read or to change. What is asked of it is decided, admitted and
// answered as if there were no such cluster, until it would be written: then another was
// faster. Nothing is ever stored through it.
func (r *REST) Absent() *REST {
	store := *r.Store
	store.Storage.Storage = absent{store.Storage.Storage}
	out := *r
	out.Store = &store
	return &out
}

// absent is a storage in which every name is taken and no object is found.
type absent struct{ storage.Interface }

// Create refuses the name.
func (absent) Create(_ context.Context, key string, _, _ runtime.Object, _ uint64) error {
	return storage.NewKeyExistsError(key, 0)
}

// Get finds nothing.
func (absent) Get(_ context.Context, key string, options storage.GetOptions, out runtime.Object) error {
	if options.IgnoreNotFound {
		return runtime.SetZeroValue(out)
	}
	return storage.NewKeyNotFoundError(key, 0)
}

// Delete finds nothing.
func (absent) Delete(_ context.Context, key string, _ runtime.Object, _ *storage.Preconditions, _ storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	return storage.NewKeyNotFoundError(key, 0)
}

// GuaranteedUpdate has the update made of nothing, and then refuses the name.
func (absent) GuaranteedUpdate(_ context.Context, key string, out runtime.Object, ignoreNotFound bool, preconditions *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object) error {
	if !ignoreNotFound {
		return storage.NewKeyNotFoundError(key, 0)
	}
	nothing := out.DeepCopyObject()
	if err := runtime.SetZeroValue(nothing); err != nil {
		return err
	}
	if err := preconditions.Check(key, nothing); err != nil {
		return err
	}
	if _, _, err := update(nothing, storage.ResponseMeta{}); err != nil {
		return err
	}
	return storage.NewKeyExistsError(key, 0)
}

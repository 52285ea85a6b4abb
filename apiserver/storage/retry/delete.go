package retry

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// Delete repeats a deletion. While attempts are open, what the next one finds
// tells what became of them: nothing, or an object with another UID, means that
// the object is gone, and the deletion succeeded with the object as it was last
// seen; that another may have removed it makes no difference to who wanted it
// gone. The same object in a later version was never deleted, and is validated
// again. The same version is not deleted yet.
func (s *store) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validateDeletion storage.ValidateObjectFunc, cached runtime.Object, options storage.DeleteOptions) error {
	if options.ExpectTransformOrDecodeError {
		// What can't be decoded has no UID to recognise it by.
		return s.Interface.Delete(ctx, key, out, preconditions, validateDeletion, cached, options)
	}
	if err := s.reachable(ctx, key); err != nil {
		return err
	}
	d := &deletion{call: s.call("delete", key), versioner: s.Versioner(), preconditions: preconditions, validateDeletion: validateDeletion}
	return d.persist(ctx, func() error {
		// The preconditions are checked in validate: an object of another UID
		// would not meet them.
		err := s.Interface.Delete(ctx, key, out, nil, d.validate, cached, options)
		cached = nil
		if d.open != nil && (storage.IsNotFound(err) || errors.Is(err, errApplied)) {
			return assign(out, d.last)
		}
		return err
	})
}

// deletion is a deletion with all its attempts.
type deletion struct {
	call
	versioner        storage.Versioner
	preconditions    *storage.Preconditions
	validateDeletion storage.ValidateObjectFunc

	// last is the object that the last attempt wanted to delete, and base its
	// version.
	last runtime.Object
	base uint64
}

// validate is the function that the storage calls on what it is about to delete.
func (d *deletion) validate(ctx context.Context, object runtime.Object) error {
	d.proposed, d.refused = false, nil
	current, err := d.versioner.ObjectResourceVersion(object)
	if err != nil {
		return err
	}
	if d.open != nil {
		switch {
		case uid(object) != uid(d.last):
			return errApplied
		case current < d.base:
			return errStale
		case current > d.base:
			d.open = nil
		}
	}
	if err := d.preconditions.Check(d.key, object); err != nil {
		return err
	}
	if err := d.ask(d.validateDeletion(ctx, object)); err != nil {
		return err
	}
	d.proposed, d.last, d.base = true, object, current
	return nil
}

// Package patch blames a patch that can't be applied on the request, in few words. The
// handlers of k8s.io/apiserver answer 500 to much of that, such as to an apply that has
// something twice and to a merge patch that is not JSON, and else repeat all of the object.
package patch

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// longest bounds the text that says why a patch can't be applied, in bytes: there may be a fault
// in each of its entries.
const longest = 1 << 10

// Blame returns what becomes of an object, with errors that say which side is at fault. All
// else that may fail meanwhile, such as admission, says that itself.
func Blame(object rest.UpdatedObjectInfo) rest.UpdatedObjectInfo { return blaming{object} }

type blaming struct{ rest.UpdatedObjectInfo }

// UpdatedObject returns what becomes of an object.
func (b blaming) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	object, err := b.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err == nil || ctx.Err() != nil {
		return object, err
	}
	info, known := genericapirequest.RequestInfoFrom(ctx)
	var status apierrors.APIStatus
	switch {
	case !known || info.Verb != "patch":
		return object, err
	case errors.As(err, &status):
		return object, brief(err)
	}
	return nil, apierrors.NewBadRequest("the patch can't be applied: " + short(err.Error()))
}

// brief returns an error with less of the patched object, if it is one that has all of that.
func brief(err error) error {
	invalid, is := err.(*apierrors.StatusError) //nolint:errorlint // what is wrapped has other words around it
	if !is || invalid.ErrStatus.Details == nil || len(invalid.ErrStatus.Details.Causes) != 1 || invalid.ErrStatus.Details.Causes[0].Field != "patch" {
		return err
	}
	out := &apierrors.StatusError{ErrStatus: *invalid.ErrStatus.DeepCopy()}
	cause := &out.ErrStatus.Details.Causes[0]
	cause.Message, out.ErrStatus.Message = short(cause.Message), short(out.ErrStatus.Message)
	return out
}

// short returns the beginning and the end of a text that is too long.
func short(text string) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest/2], "") + " ... " + strings.ToValidUTF8(text[len(text)-longest/2:], "")
}

package patch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// TestBlame answers 400 to a patch that can't be applied, and leaves all other errors as they are.
func TestBlame(t *testing.T) {
	unfit, conflict := errors.New("spec.access: ä twice"), apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, "east", errors.New("other"))
	many, half := strings.Repeat("ä", longest), strings.Repeat("ä", longest/4)
	of := func(field, says string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422, Message: says, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: field, Message: says}}}}}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, test := range []struct {
		reason, verb string
		ctx          context.Context
		err, want    error
	}{
		{"a patch that can't be applied", "patch", t.Context(), unfit, apierrors.NewBadRequest("the patch can't be applied: spec.access: ä twice")},
		{"one with many faults", "patch", t.Context(), errors.New(strings.Repeat("ä", longest)), apierrors.NewBadRequest("the patch can't be applied: " + half + " ... " + half)},
		{"an odd number of bytes", "patch", t.Context(), errors.New("a" + strings.Repeat("ä", longest) + "b"), apierrors.NewBadRequest("the patch can't be applied: a" + half[2:] + " ... " + half[2:] + "b")},
		{"one that makes no object", "patch", t.Context(), of("patch", many), of("patch", half+" ... "+half)},
		{"another fault of an object", "patch", t.Context(), of("spec", many), of("spec", many)},
		{"a conflict", "patch", t.Context(), conflict, conflict},
		{"a conflict within another error", "patch", t.Context(), fmt.Errorf("apply: %w", conflict), fmt.Errorf("apply: %w", conflict)},
		{"a request that has ended", "patch", ended, unfit, unfit},
		{"an update", "update", t.Context(), unfit, unfit},
		{"the server's own", "", t.Context(), unfit, unfit},
		{"none", "patch", t.Context(), nil, nil},
	} {
		t.Run(test.reason, func(t *testing.T) {
			ctx := test.ctx
			if test.verb != "" {
				ctx = genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{Verb: test.verb})
			}
			object := rest.DefaultUpdatedObjectInfo(nil, func(context.Context, runtime.Object, runtime.Object) (runtime.Object, error) {
				return &metav1.PartialObjectMetadata{}, test.err
			})
			out, err := Blame(object).UpdatedObject(ctx, &metav1.PartialObjectMetadata{})
			if fmt.Sprint(err) != fmt.Sprint(test.want) || err == nil && out == nil {
				t.Errorf("got %v, %v", out, err)
			}
			want, is := test.want.(apierrors.APIStatus)
			if got, _ := err.(apierrors.APIStatus); is && !reflect.DeepEqual(got.Status(), want.Status()) {
				t.Errorf("got %+v, want %+v", got.Status(), want.Status())
			}
		})
	}
}

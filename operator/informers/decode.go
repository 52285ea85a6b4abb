package informers

import (
	"context"
	"errors"
	"fmt"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	fields "github.com/clusterregistry/operator/internal/decode"
)

// custom has the kinds that are custom resources. Of these the host cluster checks no more
// than what a schema says, which may be another release's, or have had fewer rules when an
// object was stored: any object may be one that the Go type can't decode.
var custom = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(operatorv1alpha1.AddToScheme(scheme))
	utilruntime.Must(certmanagerv1.AddToScheme(scheme))
	return scheme
}()

// An UndecodableError is of an object that the host cluster stores and that the Go type of
// its kind can't decode.
type UndecodableError struct {
	// Object is what is stored.
	Object *unstructured.Unstructured
	// Field is the path of the first field that can't be decoded, such as
	// .spec.backup.store.s3.caBundle.
	Field string
	why   error
}

// Error is for a person.
func (e *UndecodableError) Error() string {
	return fmt.Sprintf("the operator can't decode %s of %s %s/%s: correct that field, or remove it (%v)", e.Field, e.Object.GetKind(), e.Object.GetNamespace(), e.Object.GetName(), e.why)
}

// Unwrap returns what the decoder says.
func (e *UndecodableError) Unwrap() error { return e.why }

// Read reads a custom resource as the host cluster has it. The error of one that can't be
// decoded is an UndecodableError.
func Read(ctx context.Context, live client.Reader, key client.ObjectKey, into client.Object) error {
	err := live.Get(ctx, key, into)
	if err == nil || apierrors.ReasonForError(err) != "" {
		return err
	}
	// Either there was no answer, or it was not understood.
	kind, unknown := apiutil.GVKForObject(into, custom)
	tree := &unstructured.Unstructured{}
	tree.SetGroupVersionKind(kind)
	if unknown != nil || live.Get(ctx, key, tree) != nil {
		return err
	}
	return decode(tree, into)
}

// decode fills an object of a Go type as a typed client does.
func decode(tree *unstructured.Unstructured, into client.Object) error {
	err := fields.Into(tree.Object, into)
	if broken := (*fields.FieldError)(nil); errors.As(err, &broken) {
		return &UndecodableError{Object: tree, Field: broken.Field, why: broken}
	}
	return err
}

// Package auditing finds what the servers of a registry are to record of requests. What a
// user refers to is checked as the servers would, before they get it: theirs is a copy, and
// what is wrong or gone leaves them with the copy that they have.
package auditing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Found is what the servers are to record.
type Found struct {
	// Render is what is rendered, nil for servers that record nothing.
	Render *render.Audit
	// Held says what of the spec the servers don't get: Degraded where those that run keep
	// what they have, Blocked where it is not known what that is, and none may be made.
	Held verdict.Verdict
}

// Read reads and checks what the spec refers to, and what the servers have where that is
// wrong.
func Read(ctx context.Context, o *operand.Objects) Found {
	spec := o.Registry.Spec.Server.Audit
	if spec == nil {
		return Found{}
	}
	audit, err := desired(ctx, o, *spec)
	if err == nil {
		return Found{Render: audit}
	}
	audit, made, cause := present(ctx, o)
	held := verdict.Failed(err).In(verdict.Backstop)
	switch {
	case cause != nil:
		held.Message += fmt.Sprintf("; no server is made or changed: %s", cause)
	case !made:
		held.Message += "; no server is made until then, since it would record nothing"
	case audit == nil:
		held.Message += "; until then, the servers record nothing, as before"
		held = held.DegradedIf(true)
	default:
		held.Message += "; until then, the servers record as before"
		held = held.DegradedIf(true)
	}
	return Found{Render: audit, Held: held}
}

// invalid is the error of something that a user has to fix.
type invalid struct{ error }

// Reason implements verdict.Expected.
func (invalid) Reason() string { return operatorv1alpha1.ReasonAuditInvalid }

func invalidf(format string, args ...any) error { return invalid{fmt.Errorf(format, args...)} }

// present returns what the servers that there are record, nil for nothing, and whether
// there are any. The error says why that is not known.
func present(ctx context.Context, o *operand.Objects) (audit *render.Audit, made bool, err error) {
	deployment := &appsv1.Deployment{}
	err = o.Live.Get(ctx, o.Key(contract.ServerSuffix), deployment)
	if apierrors.IsNotFound(err) {
		// It was deleted by hand, or there never was one.
		audit, err = last(ctx, o)
		return audit, audit != nil, err
	}
	if err != nil {
		return nil, false, err
	}
	digest := deployment.Spec.Template.Annotations[operatorv1alpha1.AnnotationAudit]
	if digest == "" {
		return nil, true, nil
	}
	audit, err = of(ctx, o, digest)
	return audit, true, err
}

// last returns what servers that are gone have recorded, nil when there is no trace of it.
func last(ctx context.Context, o *operand.Objects) (*render.Audit, error) {
	prefix := o.Name(contract.AuditSuffix) + "-"
	for _, reference := range slices.Backward(o.Registry.Status.Inventory) {
		if digest, is := strings.CutPrefix(reference.Name, prefix); is && reference.Kind == "Secret" {
			return of(ctx, o, digest)
		}
	}
	return nil, nil
}

// of returns what the Secret of a digest says.
func of(ctx context.Context, o *operand.Objects, digest string) (*render.Audit, error) {
	name := o.Name(contract.AuditSuffix) + "-" + digest
	secret, err := o.Secret(ctx, name)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, fmt.Errorf("their copy, Secret %s, is gone", name)
	}
	audit, err := render.AuditOf(secret.Data, digest)
	if err != nil {
		return nil, fmt.Errorf("their copy, Secret %s, is damaged: %w", name, err)
	}
	return audit, nil
}

// errInvalidConfig is the error of what is not a kubeconfig. What was wrong is not repeated:
// it may be a token.
var errInvalidConfig = errors.New("it is not a valid kubeconfig")

// errEmpty is the error of a key with nothing in it.
var errEmpty = errors.New("it is empty")

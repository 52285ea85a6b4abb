// Package reviews answers, in independent mode, who a caller or the bearer of a token is
// to the server, whether someone may do something, and what a caller may do. kubectl auth
// whoami and can-i ask about oneself; a server or webhook that leaves authentication or
// authorization to the registry asks about others.
package reviews

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// AddToScheme registers the kinds of all reviews.
func AddToScheme(scheme *runtime.Scheme) error {
	for group, kinds := range map[schema.GroupVersion][]runtime.Object{
		authenticationv1.SchemeGroupVersion: {&authenticationv1.SelfSubjectReview{}, &authenticationv1.TokenReview{}},
		authorizationv1.SchemeGroupVersion: {&authorizationv1.SelfSubjectAccessReview{}, &authorizationv1.SelfSubjectRulesReview{},
			&authorizationv1.SubjectAccessReview{}},
	} {
		// v1 serves as its own hub: the reviews have no other version.
		scheme.AddKnownTypes(schema.GroupVersion{Group: group.Group, Version: runtime.APIVersionInternal}, kinds...)
		scheme.AddKnownTypes(group, kinds...)
		metav1.AddToGroupVersion(scheme, group)
		if err := scheme.SetVersionPriority(group); err != nil {
			return err
		}
	}
	return nil
}

// Authentication returns the resources of authentication.k8s.io/v1. Whose a token is,
// bearers tells by a request that has it.
func Authentication(bearers authenticator.Request) map[string]rest.Storage {
	return map[string]rest.Storage{
		"selfsubjectreviews": review[*authenticationv1.SelfSubjectReview]{
			singular: "selfsubjectreview", empty: func() *authenticationv1.SelfSubjectReview { return &authenticationv1.SelfSubjectReview{} }, answer: whoAmI},
		"tokenreviews": review[*authenticationv1.TokenReview]{
			singular: "tokenreview", empty: func() *authenticationv1.TokenReview { return &authenticationv1.TokenReview{} },
			answer: func(ctx context.Context, _ user.Info, r *authenticationv1.TokenReview) error {
				return whose(ctx, bearers, r)
			}},
	}
}

// Authorization returns the resources of authorization.k8s.io/v1. What someone
// may do, access decides and rules lists.
func Authorization(access authorizer.UnconditionalAuthorizer, rules authorizer.RuleResolver) map[string]rest.Storage {
	return map[string]rest.Storage{
		"selfsubjectaccessreviews": review[*authorizationv1.SelfSubjectAccessReview]{
			singular: "selfsubjectaccessreview", empty: func() *authorizationv1.SelfSubjectAccessReview { return &authorizationv1.SelfSubjectAccessReview{} },
			answer: func(ctx context.Context, who user.Info, r *authorizationv1.SelfSubjectAccessReview) error {
				return canI(ctx, access, who, r)
			}},
		"selfsubjectrulesreviews": review[*authorizationv1.SelfSubjectRulesReview]{
			singular: "selfsubjectrulesreview", empty: func() *authorizationv1.SelfSubjectRulesReview { return &authorizationv1.SelfSubjectRulesReview{} },
			answer: func(ctx context.Context, who user.Info, r *authorizationv1.SelfSubjectRulesReview) error {
				whatMayI(ctx, rules, who, r)
				return nil
			}},
		"subjectaccessreviews": review[*authorizationv1.SubjectAccessReview]{
			singular: "subjectaccessreview", empty: func() *authorizationv1.SubjectAccessReview { return &authorizationv1.SubjectAccessReview{} },
			answer: func(ctx context.Context, _ user.Info, r *authorizationv1.SubjectAccessReview) error {
				return may(ctx, access, r)
			}},
	}
}

// review is a resource that is only created, which answers it; nothing is stored.
type review[T runtime.Object] struct {
	singular string
	empty    func() T
	answer   func(ctx context.Context, who user.Info, review T) error
}

var (
	_ rest.Creater              = review[runtime.Object]{} //nolint:misspell // its name
	_ rest.Scoper               = review[runtime.Object]{}
	_ rest.SingularNameProvider = review[runtime.Object]{}
)

func (r review[T]) New() runtime.Object { return r.empty() }

func (review[T]) Destroy() {}

func (review[T]) NamespaceScoped() bool { return false }

func (r review[T]) GetSingularName() string { return r.singular }

func (r review[T]) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	who, ok := genericrequest.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("the request has no user")
	}
	if validate != nil {
		if err := validate(ctx, object.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	review, ok := object.(T)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%T is not a %s", object, r.singular))
	}
	return review, r.answer(ctx, who, review)
}

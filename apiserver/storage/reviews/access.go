package reviews

import (
	"context"
	"errors"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func canI(ctx context.Context, access authorizer.UnconditionalAuthorizer, who user.Info, review *authorizationv1.SelfSubjectAccessReview) (err error) {
	review.Status, err = decide(ctx, access, who, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	return err
}

// may answers about someone else, who is what the review says: with no group added to it.
func may(ctx context.Context, access authorizer.UnconditionalAuthorizer, review *authorizationv1.SubjectAccessReview) (err error) {
	if review.Spec.User == "" && len(review.Spec.Groups) == 0 {
		return apierrors.NewBadRequest("spec needs user, groups or both: name whom the question is about")
	}
	who := &user.DefaultInfo{Name: review.Spec.User, UID: review.Spec.UID, Groups: review.Spec.Groups}
	if len(review.Spec.Extra) > 0 {
		who.Extra = map[string][]string{}
		for key, values := range review.Spec.Extra {
			who.Extra[key] = values
		}
	}
	review.Status, err = decide(ctx, access, who, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	return err
}

// decide answers whether someone may do something with a resource or a path, one of them.
func decide(ctx context.Context, access authorizer.UnconditionalAuthorizer, who user.Info, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) (authorizationv1.SubjectAccessReviewStatus, error) {
	question := authorizer.AttributesRecord{User: who}
	switch {
	case resource != nil && path == nil:
		question.ResourceRequest = true
		question.Verb, question.Namespace, question.APIGroup, question.APIVersion = resource.Verb, resource.Namespace, resource.Group, resource.Version
		question.Resource, question.Subresource, question.Name = resource.Resource, resource.Subresource, resource.Name
		if err := restrict(resource, &question); err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, err
		}
	case path != nil && resource == nil:
		question.Verb, question.Path = path.Verb, path.Path
	default:
		return authorizationv1.SubjectAccessReviewStatus{}, apierrors.NewBadRequest("spec needs exactly one of resourceAttributes and nonResourceAttributes")
	}
	decision, reason, err := access.Authorize(ctx, question)
	status := authorizationv1.SubjectAccessReviewStatus{Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason}
	if err := errors.Join(err, question.FieldSelectorParsingErr, question.LabelSelectorParsingErr); err != nil {
		status.EvaluationError = err.Error()
	}
	return status, nil
}

func whatMayI(ctx context.Context, rules authorizer.RuleResolver, who user.Info, review *authorizationv1.SelfSubjectRulesReview) {
	resources, paths, incomplete, err := rules.RulesFor(ctx, who, review.Spec.Namespace)
	// Both lists are required fields: an empty one is [], not null.
	status := authorizationv1.SubjectRulesReviewStatus{Incomplete: incomplete, ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	for _, rule := range resources {
		status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{Verbs: rule.GetVerbs(), APIGroups: rule.GetAPIGroups(), Resources: rule.GetResources(), ResourceNames: rule.GetResourceNames()})
	}
	for _, rule := range paths {
		status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{Verbs: rule.GetVerbs(), NonResourceURLs: rule.GetNonResourceURLs()})
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	review.Status = status
}

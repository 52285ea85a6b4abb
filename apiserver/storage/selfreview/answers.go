package selfreview

import (
	"context"
	"errors"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func whoAmI(_ context.Context, who user.Info, review *authenticationv1.SelfSubjectReview) error {
	info := authenticationv1.UserInfo{Username: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups()}
	if extra := who.GetExtra(); len(extra) > 0 {
		info.Extra = map[string]authenticationv1.ExtraValue{}
		for key, values := range extra {
			info.Extra[key] = values
		}
	}
	review.Status = authenticationv1.SelfSubjectReviewStatus{UserInfo: info}
	return nil
}

func canI(ctx context.Context, access authorizer.UnconditionalAuthorizer, who user.Info, review *authorizationv1.SelfSubjectAccessReview) error {
	question := authorizer.AttributesRecord{User: who}
	switch resource, path := review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes; {
	case resource != nil && path == nil:
		question.ResourceRequest = true
		question.Verb, question.Namespace, question.APIGroup, question.APIVersion = resource.Verb, resource.Namespace, resource.Group, resource.Version
		question.Resource, question.Subresource, question.Name = resource.Resource, resource.Subresource, resource.Name
		if err := restrict(resource, &question); err != nil {
			return err
		}
	case path != nil && resource == nil:
		question.Verb, question.Path = path.Verb, path.Path
	default:
		return apierrors.NewBadRequest("spec needs exactly one of resourceAttributes and nonResourceAttributes")
	}
	decision, reason, err := access.Authorize(ctx, question)
	review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason}
	if err := errors.Join(err, question.FieldSelectorParsingErr, question.LabelSelectorParsingErr); err != nil {
		review.Status.EvaluationError = err.Error()
	}
	return nil
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

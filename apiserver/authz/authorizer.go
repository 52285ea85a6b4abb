// Package authz decides, in independent mode, what a caller may do. Role-based
// access control as Kubernetes defines it (rbac.authorization.k8s.io/v1), by
// the ClusterRoles and ClusterRoleBindings that the registry itself stores. No
// group is above it: system:masters means nothing here.
package authz

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	rbacv1listers "k8s.io/client-go/listers/rbac/v1"
)

// RBAC decides by roles and their bindings. It knows what its listers know,
// which may lag behind the last write for a moment.
type RBAC struct {
	// Roles are all ClusterRoles.
	Roles rbacv1listers.ClusterRoleLister
	// Bindings are all ClusterRoleBindings.
	Bindings rbacv1listers.ClusterRoleBindingLister
}

var _ authorizer.RuleResolver = &RBAC{}

// Authorize allows what a role that is bound to the caller allows. All else
// gets no opinion, with the bindings that lead to no role as the reason.
func (r *RBAC) Authorize(_ context.Context, request authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason := authorizer.DecisionNoOpinion, ""
	err := r.visit(request.GetUser(), func(binding *rbacv1.ClusterRoleBinding, rule *rbacv1.PolicyRule) bool {
		if !allows(rule, request) {
			return true
		}
		decision, reason = authorizer.DecisionAllow, fmt.Sprintf("ClusterRoleBinding %q grants ClusterRole %q", binding.Name, binding.RoleRef.Name)
		return false
	})
	if err != nil && decision != authorizer.DecisionAllow {
		// Not an error of the request: what is bound wrongly allows nothing.
		reason = err.Error()
	}
	return decision, reason, nil
}

// ConditionsAwareAuthorize is Authorize: roles know no conditions.
func (r *RBAC) ConditionsAwareAuthorize(ctx context.Context, request authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(r.Authorize(ctx, request))
}

// EvaluateConditions denies: no decision of RBAC has conditions.
func (r *RBAC) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// Rules returns all rules that are bound to the user. The error names bindings
// that lead to no role; the rules are those of the others.
func (r *RBAC) Rules(who user.Info) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	err := r.visit(who, func(_ *rbacv1.ClusterRoleBinding, rule *rbacv1.PolicyRule) bool {
		rules = append(rules, *rule)
		return true
	})
	return rules, err
}

// RulesFor returns the user's rules in the form of a SelfSubjectRulesReview.
// They are the same in every namespace, since all roles are of the cluster.
func (r *RBAC) RulesFor(_ context.Context, who user.Info, _ string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	rules, err := r.Rules(who)
	var resources []authorizer.ResourceRuleInfo
	var paths []authorizer.NonResourceRuleInfo
	for _, rule := range rules {
		if len(rule.Resources) > 0 {
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames})
		}
		if len(rule.NonResourceURLs) > 0 {
			paths = append(paths, &authorizer.DefaultNonResourceRuleInfo{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
		}
	}
	return resources, paths, err != nil, err
}

// visit calls see with each rule that is bound to the user until it returns
// false. The error names the bindings of the user that lead to no role.
func (r *RBAC) visit(who user.Info, see func(*rbacv1.ClusterRoleBinding, *rbacv1.PolicyRule) bool) error {
	if who == nil {
		return errors.New("the request has no user")
	}
	bindings, err := r.Bindings.List(labels.Everything())
	if err != nil {
		return err
	}
	asked := subjectOf(who)
	var lost []error
	for _, binding := range bindings {
		if !asked.isOneOf(binding.Subjects) {
			continue
		}
		role, err := r.Roles.Get(binding.RoleRef.Name)
		if err != nil {
			lost = append(lost, fmt.Errorf("ClusterRoleBinding %q: %w", binding.Name, err))
			continue
		}
		for i := range role.Rules {
			if !see(binding, &role.Rules[i]) {
				return utilerrors.NewAggregate(lost)
			}
		}
	}
	return utilerrors.NewAggregate(lost)
}

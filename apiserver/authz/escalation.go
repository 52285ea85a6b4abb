package authz

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// ConfirmRole returns nil when the caller may write a ClusterRole with these
// rules: they hold them all, or have the verb escalate on ClusterRoles.
func (r *RBAC) ConfirmRole(ctx context.Context, rules []rbacv1.PolicyRule) error {
	// A POST names no object in its path, so that escalate on a named role does
	// not reach it; kube-apiserver decides the same.
	name := ""
	if info, ok := genericrequest.RequestInfoFrom(ctx); ok {
		name = info.Name
	}
	if r.callerMay(ctx, "escalate", name) {
		return nil
	}
	return r.confirmHeld(ctx, rules, "escalate")
}

// ConfirmBinding returns nil when the caller may bind a ClusterRole to
// someone: they hold all of its rules, or have the verb bind on it. A role that
// is not there can only be bound with the verb.
func (r *RBAC) ConfirmBinding(ctx context.Context, role string) error {
	if r.callerMay(ctx, "bind", role) {
		return nil
	}
	found, err := r.Roles.Get(role)
	if err != nil {
		return err
	}
	return r.confirmHeld(ctx, found.Rules, "bind")
}

func (r *RBAC) callerMay(ctx context.Context, verb, name string) bool {
	who, ok := genericrequest.UserFrom(ctx)
	if !ok {
		return false
	}
	decision, _, err := r.Authorize(ctx, authorizer.AttributesRecord{
		User: who, Verb: verb, APIGroup: rbacv1.GroupName, APIVersion: "*", Resource: "clusterroles", Name: name, ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// confirmHeld names the rules that the caller does not hold, and the verb that
// would do instead.
func (r *RBAC) confirmHeld(ctx context.Context, rules []rbacv1.PolicyRule, verb string) error {
	who, ok := genericrequest.UserFrom(ctx)
	if !ok {
		return errors.New("the request has no user")
	}
	held, err := r.Rules(who)
	covered, missing := validation.Covers(held, rules)
	if covered {
		return nil
	}
	var texts []string
	for _, rule := range missing {
		texts = append(texts, describe(rule))
	}
	slices.Sort(texts)
	return errors.Join(fmt.Errorf("user %q (groups %q) can't grant permissions that they do not have: %s; ask someone who has them, or who has the verb %q on the ClusterRole",
		who.GetName(), who.GetGroups(), strings.Join(slices.Compact(texts), ", "), verb), err)
}

func describe(rule rbacv1.PolicyRule) string {
	verbs := strings.Join(rule.Verbs, ",")
	if len(rule.NonResourceURLs) > 0 {
		return fmt.Sprintf("%s on path %s", verbs, strings.Join(rule.NonResourceURLs, ","))
	}
	text := fmt.Sprintf("%s on %s in API group %q", verbs, strings.Join(rule.Resources, ","), strings.Join(rule.APIGroups, ","))
	if len(rule.ResourceNames) > 0 {
		text += fmt.Sprintf(" named %s", strings.Join(rule.ResourceNames, ","))
	}
	return text
}

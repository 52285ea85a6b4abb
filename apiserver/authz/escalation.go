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
	if tooMuch := tooMuch(held, rules); tooMuch != nil {
		return fmt.Errorf("user %q (groups %q) can't grant permissions that can't be compared with theirs: %w; split the role, use \"*\" for all values of a list, or ask someone who has the verb %q on the ClusterRole",
			who.GetName(), who.GetGroups(), tooMuch, verb)
	}
	lacks := missing(held, rules, mostNamed+1)
	if len(lacks) == 0 {
		return nil
	}
	var texts []string
	for _, permission := range lacks[:min(len(lacks), mostNamed)] {
		texts = append(texts, permission.String())
	}
	slices.Sort(texts)
	if len(lacks) > mostNamed {
		texts = append(texts, "and others")
	}
	return errors.Join(fmt.Errorf("user %q (groups %q) can't grant permissions that they do not have: %s; ask someone who has them, or who has the verb %q on the ClusterRole",
		who.GetName(), who.GetGroups(), strings.Join(texts, ", "), verb), err)
}

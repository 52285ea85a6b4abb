package authz

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// allows reports whether a rule allows a request, as the API reference of
// rbac.authorization.k8s.io/v1 defines it.
func allows(rule *rbacv1.PolicyRule, request authorizer.Attributes) bool {
	if !has(rule.Verbs, request.GetVerb()) {
		return false
	}
	if !request.IsResourceRequest() {
		return matchesPath(rule.NonResourceURLs, request.GetPath())
	}
	return has(rule.APIGroups, request.GetAPIGroup()) &&
		matchesResource(rule.Resources, request.GetResource(), request.GetSubresource()) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, request.GetName()))
}

// has reports whether a rule's list of verbs, groups or resources has a value;
// the wildcard is the same for all of them.
func has(list []string, value string) bool {
	return slices.Contains(list, rbacv1.VerbAll) || slices.Contains(list, value)
}

// matchesResource reports whether a resource is in a rule's list. There a
// subresource follows a slash, and "*/scale" means scale of every resource.
func matchesResource(list []string, resource, subresource string) bool {
	if subresource == "" {
		return has(list, resource)
	}
	return has(list, resource+"/"+subresource) || slices.Contains(list, "*/"+subresource)
}

// matchesPath reports whether a path is in a rule's list, where a path may end
// with a "*" for whatever follows.
func matchesPath(list []string, path string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return entry == path || strings.HasSuffix(entry, rbacv1.NonResourceAll) && strings.HasPrefix(path, strings.TrimRight(entry, rbacv1.NonResourceAll))
	})
}

// subject is a user as the subjects of bindings name them. A review may ask about someone with as
// many groups as a body has room for, and a binding may have as many subjects.
type subject struct {
	name   string
	groups sets.Set[string]
}

func subjectOf(who user.Info) subject {
	return subject{who.GetName(), sets.New(who.GetGroups()...)}
}

// isOneOf reports whether a binding's subjects have the user or one of their groups.
func (s *subject) isOneOf(subjects []rbacv1.Subject) bool {
	return slices.ContainsFunc(subjects, func(of rbacv1.Subject) bool {
		switch of.Kind {
		case rbacv1.UserKind:
			return s.name == of.Name
		case rbacv1.GroupKind:
			return s.groups.Has(of.Name)
		case rbacv1.ServiceAccountKind:
			return of.Namespace != "" && serviceaccount.MatchesUsername(of.Namespace, of.Name, s.name)
		}
		return false
	})
}

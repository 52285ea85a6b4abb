package access

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	anonymous       = "system:anonymous"
	authenticated   = "system:authenticated"
	unauthenticated = "system:unauthenticated"
	// serviceAccount begins the user name of a service account, and serviceAccounts is
	// the group of all of them, and begins that of those of a namespace.
	serviceAccount  = "system:serviceaccount:"
	serviceAccounts = "system:serviceaccounts"
)

// who is someone as an API server knows them.
type who struct {
	user, uid string
	groups    []string
	extra     map[string]authorizationv1.ExtraValue
}

// whoIs returns someone by name, with the groups that the name brings besides those that
// are given: an API server adds the same.
func whoIs(user string, groups []string) who {
	groups = slices.Clone(groups)
	if namespace, _, is := account(user); is {
		groups = append(groups, serviceAccounts, serviceAccounts+":"+namespace)
	}
	switch {
	case user == anonymous:
		groups = append(groups, unauthenticated)
	case !slices.Contains(groups, unauthenticated):
		groups = append(groups, authenticated)
	}
	slices.Sort(groups)
	return who{user: user, groups: slices.Compact(groups)}
}

// whoAmI returns someone as an API server has said who they are.
func whoAmI(info authenticationv1.UserInfo) who {
	out := who{user: info.Username, uid: info.UID, groups: slices.Sorted(slices.Values(info.Groups)), extra: map[string]authorizationv1.ExtraValue{}}
	for key, values := range info.Extra {
		out.extra[key] = authorizationv1.ExtraValue(values)
	}
	return out
}

// account returns the namespace and the name of a service account by its user name.
func account(user string) (namespace, name string, is bool) {
	rest, is := strings.CutPrefix(user, serviceAccount)
	namespace, name, parted := strings.Cut(rest, ":")
	return namespace, name, is && parted && namespace != "" && name != "" && !strings.Contains(name, ":")
}

// is reports whether the subject of a binding is someone, or a group of theirs.
func (w who) is(subject rbacv1.Subject) bool {
	switch subject.Kind {
	case rbacv1.UserKind:
		return subject.Name == w.user
	case rbacv1.GroupKind:
		return slices.Contains(w.groups, subject.Name)
	case rbacv1.ServiceAccountKind:
		namespace, name, is := account(w.user)
		return is && namespace == subject.Namespace && name == subject.Name
	}
	return false
}

// described returns a subject for people.
func described(subject rbacv1.Subject) string {
	switch subject.Kind {
	case rbacv1.UserKind:
		return "user " + subject.Name
	case rbacv1.GroupKind:
		return "group " + subject.Name
	}
	return "service account " + subject.Namespace + ":" + subject.Name
}

package access

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestAllows has each way in which a rule of RBAC matches or doesn't, as the API reference
// of rbac.authorization.k8s.io/v1 defines it.
func TestAllows(t *testing.T) {
	const group = "clusterregistry.k8s.io"
	rule := func(groups, resources, verbs string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{groups}, Resources: []string{"nothing", resources}, Verbs: []string{"nothing", verbs}, ResourceNames: names}
	}
	for _, test := range []struct {
		reason string
		rule   rbacv1.PolicyRule
		right  Right
		want   bool
	}{
		{"the same", rule(group, "clusters", "list"), gate("list"), true},
		{"another verb", rule(group, "clusters", "get"), gate("list"), false},
		{"every verb", rule(group, "clusters", "*"), gate("list"), true},
		{"another group", rule("example.com", "clusters", "list"), gate("list"), false},
		{"the core group", rule("", "clusters", "list"), gate("list"), false},
		{"every group", rule("*", "clusters", "list"), gate("list"), true},
		{"every resource", rule(group, "*", "list"), gate("list"), true},
		{"a subresource alone", rule(group, "clusters/status", "list"), gate("list"), false},
		{"for one name, asked for all", rule(group, "clusters", "list", "east"), gate("list"), false},
		{"the subresource", rule(group, "clustersets/clusters", "get"), decision("get", "a"), true},
		{"the subresource of every resource", rule(group, "*/clusters", "get"), decision("get", "a"), true},
		{"another subresource of every resource", rule(group, "*/join", "get"), decision("get", "a"), false},
		{"every resource, asked for a subresource", rule(group, "*", "get"), decision("get", "a"), true},
		{"every subresource of the resource, which RBAC does not know", rule(group, "clustersets/*", "get"), decision("get", "a"), false},
		{"the resource, asked for its subresource", rule(group, "clustersets", "get"), decision("get", "a"), false},
		{"the name", rule(group, "clustersets/clusters", "get", "b", "a"), decision("get", "a"), true},
		{"another name", rule(group, "clustersets/clusters", "get", "b"), decision("get", "a"), false},
		{"a name with a wildcard, which RBAC does not know", rule(group, "clustersets/clusters", "get", "*"), decision("get", "a"), false},
		{"no name, asked for all", rule(group, "clustersets/clusters", "get"), decision("get", ""), true},
		{"an empty name, asked for all", rule(group, "clustersets/clusters", "get", ""), decision("get", ""), true},
		{"an empty name, asked for one", rule(group, "clustersets/clusters", "get", ""), decision("get", "a"), false},
		{"paths", rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}, gate("list"), false},
		{"nothing", rbacv1.PolicyRule{}, gate("list"), false},
	} {
		if got := test.right.allows(test.rule); got != test.want {
			t.Errorf("%s: %+v allows %s: %t", test.reason, test.rule, test.right, got)
		}
	}
}

// TestWhoIs expects the groups that an API server adds to those that are given.
func TestWhoIs(t *testing.T) {
	for _, test := range []struct {
		user   string
		groups []string
		want   string
	}{
		{"ann", []string{"b", "a", "b"}, "[a b system:authenticated]"},
		{"ann", []string{"system:authenticated"}, "[system:authenticated]"},
		{"system:anonymous", nil, "[system:unauthenticated]"},
		{"ann", []string{"system:unauthenticated"}, "[system:unauthenticated]"},
		{"system:serviceaccount:ci:deployer", nil, "[system:authenticated system:serviceaccounts system:serviceaccounts:ci]"},
		{"system:serviceaccount:ci", nil, "[system:authenticated]"},
		{"system:serviceaccount:ci:", nil, "[system:authenticated]"},
		{"system:serviceaccount:ci:a:b", nil, "[system:authenticated]"},
	} {
		if got := whoIs(test.user, test.groups); fmt.Sprint(got.groups) != test.want || got.user != test.user {
			t.Errorf("%s of %q is %+v, want %s", test.user, test.groups, got, test.want)
		}
	}
	w := whoIs("system:serviceaccount:ci:deployer", nil)
	for subject, want := range map[rbacv1.Subject]bool{
		{Kind: "ServiceAccount", Namespace: "ci", Name: "deployer"}:    true,
		{Kind: "ServiceAccount", Namespace: "other", Name: "deployer"}: false,
		{Kind: "ServiceAccount", Name: "deployer"}:                     false,
		{Kind: "User", Name: "system:serviceaccount:ci:deployer"}:      true,
		{Kind: "User", Name: "deployer"}:                               false,
		{Kind: "Group", Name: "system:serviceaccounts:ci"}:             true,
		{Kind: "Group", Name: "system:serviceaccount:ci:deployer"}:     false,
		{Kind: "Robot", Name: "system:serviceaccount:ci:deployer"}:     false,
	} {
		if got := w.is(subject); got != want {
			t.Errorf("%+v is them: %t", subject, got)
		}
	}
}

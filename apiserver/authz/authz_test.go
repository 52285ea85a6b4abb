package authz

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	rbacv1listers "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/internal/contract"
)

// fixed returns an authorizer over the bootstrap roles and the given ones, each
// of which is bound to the user of the same name.
func fixed(t *testing.T, roles map[string][]rbacv1.PolicyRule) *RBAC {
	t.Helper()
	roleStore, bindingStore := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	add := func(store cache.Indexer, object any) {
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range bootstrapRoles() {
		add(roleStore, &role)
	}
	for _, binding := range bootstrapBindings() {
		add(bindingStore, &binding)
	}
	for role, group := range map[string]string{"status-writer": "writers", "editor": "editors", "endpoint-editor": "endpoint-editors"} {
		bound := binding(role, group)
		bound.Name = group
		add(bindingStore, &bound)
	}
	for name, rules := range roles {
		add(roleStore, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
		add(bindingStore, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Name: name}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: name}}})
	}
	return &RBAC{Roles: rbacv1listers.NewClusterRoleLister(roleStore), Bindings: rbacv1listers.NewClusterRoleBindingLister(bindingStore)}
}

func rule(verbs, groups, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Split(verbs, ","), APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), ResourceNames: names}
}

func TestAuthorize(t *testing.T) {
	const group = "clusterregistry.k8s.io"
	r := fixed(t, map[string][]rbacv1.PolicyRule{
		"ann": {rule("get", group, "clusters", "east")},
		"bob": {rule("update", "*", "*/status")},
		"cat": {rule("*", group, "*"), {Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics", "/debug/*"}}},
	})
	known := func(name string, groups ...string) user.Info {
		return &user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)}
	}
	clusters := func(verb, name, sub string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{Verb: verb, APIGroup: group, Resource: "clusters", Name: name, Subresource: sub, ResourceRequest: true}
	}
	path := func(path string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{Verb: "get", Path: path}
	}
	for _, test := range []struct {
		reason  string
		who     user.Info
		request authorizer.AttributesRecord
		want    bool
	}{
		{"the named object", known("ann"), clusters("get", "east", ""), true},
		{"another object", known("ann"), clusters("get", "west", ""), false},
		{"all objects, when one is named", known("ann"), clusters("list", "", ""), false},
		{"a subresource of the named object", known("ann"), clusters("get", "east", "status"), false},
		{"a subresource of every resource", known("bob"), clusters("update", "x", "status"), true},
		{"the resource itself, when its subresource is granted", known("bob"), clusters("update", "x", ""), false},
		{"every subresource by the wildcard", known("cat"), clusters("patch", "x", "status"), true},
		{"a path", known("cat"), path("/metrics"), true},
		{"below a path", known("cat"), path("/debug/pprof/heap"), true},
		{"below a path that has no wildcard", known("cat"), path("/metrics/slis"), false},
		{"a status by its writers", known("x", "writers"), clusters("patch", "east", "status"), true},
		{"a cluster by writers of statuses", known("x", "writers"), clusters("get", "east", ""), true},
		{"a change of a cluster by writers of statuses", known("x", "writers"), clusters("patch", "east", ""), false},
		{"a new cluster by editors", known("x", "editors"), clusters("create", "", ""), true},
		{"an endpoint by editors", known("x", "editors"), clusters("update", "east", "endpoints"), false},
		{"an identity by editors", known("x", "editors"), clusters("update", "east", "identity"), false},
		{"an endpoint by endpoint editors", known("x", "endpoint-editors"), clusters("update", "east", "endpoints"), true},
		{"an identity by endpoint editors", known("x", "endpoint-editors"), clusters("update", "east", "identity"), true},
		{"an endpoint by writers of statuses", known("x", "writers"), clusters("update", "east", "endpoints"), false},
		{"an endpoint by the function health", known("x", contract.HealthGroup), clusters("update", "east", "endpoints"), false},
		{"an endpoint by the function registerHost", known("x", contract.RegisterHostGroup), clusters("update", "east", "endpoints"), true},
		{"discovery for everybody who is known", known("x"), path("/apis/clusterregistry.k8s.io"), true},
		{"discovery for anonymous", &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}, path("/apis"), false},
		{"clusters for everybody", known("x"), clusters("list", "", ""), false},
		{"every cluster by the function health", known("x", contract.HealthGroup), clusters("watch", "", ""), true},
		{"a report by the function health", known("x", contract.HealthGroup), clusters("patch", "east", "status"), true},
		{"a new cluster by the function health", known("x", contract.HealthGroup), clusters("create", "", ""), false},
		{"a change of a cluster by the function health", known("x", contract.HealthGroup), clusters("update", "east", ""), false},
		{"a new cluster by the function registerHost", known("x", contract.RegisterHostGroup), clusters("create", "", ""), true},
		{"a change of a cluster by the function registerHost", known("x", contract.RegisterHostGroup), clusters("update", "east", ""), true},
		{"its report by the function registerHost", known("x", contract.RegisterHostGroup), clusters("patch", "host", "status"), true},
		{"the end of a cluster by the function registerHost", known("x", contract.RegisterHostGroup), clusters("delete", "east", ""), false},
		{"roles by both functions", known("x", contract.HealthGroup, contract.RegisterHostGroup), authorizer.AttributesRecord{Verb: "list", APIGroup: rbacv1.GroupName, Resource: "clusterroles", ResourceRequest: true}, false},
		{"anything for the admins", known("x", Admins), clusters("deletecollection", "", ""), true},
		{"anything for system:masters", known("x", user.SystemPrivilegedGroup), clusters("get", "east", ""), false},
		{"nobody", nil, clusters("get", "east", ""), false},
	} {
		test.request.User = test.who
		decision, reason, err := r.Authorize(t.Context(), test.request)
		if err != nil || (decision == authorizer.DecisionAllow) != test.want {
			t.Errorf("%s: %v, %q, %v", test.reason, decision, reason, err)
		}
	}
}

func TestMissingRoleIsNamed(t *testing.T) {
	r := fixed(t, map[string][]rbacv1.PolicyRule{"ann": nil})
	role, err := r.Roles.Get("ann")
	if err != nil {
		t.Fatal(err)
	}
	binding, err := r.Bindings.Get("ann")
	if err != nil {
		t.Fatal(err)
	}
	binding.RoleRef.Name = "lost"
	_, reason, err := r.Authorize(t.Context(), authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "ann"}, Verb: "get", Resource: role.Name, ResourceRequest: true})
	if err != nil || !strings.Contains(reason, `ClusterRoleBinding "ann"`) || !strings.Contains(reason, `"lost" not found`) {
		t.Errorf("reason %q, %v", reason, err)
	}
}

func TestGrantingNeedsHolding(t *testing.T) {
	const group = "clusterregistry.k8s.io"
	r := fixed(t, map[string][]rbacv1.PolicyRule{
		"ann":  {rule("get,list", group, "clusters")},
		"bind": {rule("bind", rbacv1.GroupName, "clusterroles", "ann")},
		"esc":  {rule("escalate", rbacv1.GroupName, "clusterroles", "ann")},
	})
	as := func(name, object string) context.Context {
		ctx := genericrequest.WithUser(t.Context(), &user.DefaultInfo{Name: name})
		return genericrequest.WithRequestInfo(ctx, &genericrequest.RequestInfo{Name: object})
	}
	for _, test := range []struct {
		reason string
		err    error
		want   string
	}{
		{reason: "a part of what he holds", err: r.ConfirmRole(as("ann", ""), []rbacv1.PolicyRule{rule("list", group, "clusters")})},
		{"more than he holds", r.ConfirmRole(as("ann", ""), []rbacv1.PolicyRule{rule("list,delete", group, "clusters")}), `delete on clusters in API group "clusterregistry.k8s.io"; ask someone who has them, or who has the verb "escalate"`},
		{"by a wildcard", r.ConfirmRole(as("ann", ""), []rbacv1.PolicyRule{rule("get", group, "*")}), "get on * in"},
		{reason: "with escalate on this role", err: r.ConfirmRole(as("esc", "ann"), []rbacv1.PolicyRule{rule("*", "*", "*")})},
		{"with escalate on another role", r.ConfirmRole(as("esc", "other"), []rbacv1.PolicyRule{rule("*", "*", "*")}), "* on * in API group"},
		{reason: "a role that he holds", err: r.ConfirmBinding(as("ann", ""), "ann")},
		{"a role that he does not hold", r.ConfirmBinding(as("ann", ""), "bind"), `bind on clusterroles in API group "rbac.authorization.k8s.io" named ann`},
		{reason: "with bind on the role", err: r.ConfirmBinding(as("bind", ""), "ann")},
		{"with bind on another role", r.ConfirmBinding(as("bind", ""), "esc"), `the verb "bind"`},
		{"a role that is not there", r.ConfirmBinding(as("ann", ""), "lost"), "not found"},
		{"nobody", r.ConfirmRole(t.Context(), []rbacv1.PolicyRule{rule("get", "", "x")}), "the request has no user"},
	} {
		if (test.err == nil) != (test.want == "") || test.err != nil && !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.reason, test.err, test.want)
		}
	}
}

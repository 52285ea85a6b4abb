package authz

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/internal/contract"
)

// Admins is the group that the role clusterregistry:admin is bound to.
const Admins = "clusterregistry:admins"

const prefix = "clusterregistry:"

// bootstrapRoles are the roles that every registry has.
func bootstrapRoles() []rbacv1.ClusterRole {
	group := []string{clusterregistry.GroupName}
	clusters := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clusters"}, Verbs: verbs}
	}
	sets := rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clustersets"}, Verbs: []string{"get", "list", "watch"}}
	status := rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clusters/status"}, Verbs: []string{"get"}}
	// They can't be watched.
	heartbeats := func(more ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clusterheartbeats"}, Verbs: append([]string{"get", "list"}, more...)}
	}
	reports := rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clusters/status"}, Verbs: []string{"patch"}}
	editing := clusters("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
	// What --guarded-fields=Enforce asks for besides: an editor alone leads no one elsewhere.
	guarded := rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clusters/endpoints", "clusters/identity"}, Verbs: []string{"update"}}
	// What --visibility=ClusterSets asks for, of all clusters: what a role has with the name of
	// a set is of those in it.
	shown := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clustersets/clusters"}, Verbs: verbs}
	}
	return []rbacv1.ClusterRole{
		role("admin",
			rbacv1.PolicyRule{APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}},
			rbacv1.PolicyRule{NonResourceURLs: []string{rbacv1.NonResourceAll}, Verbs: []string{rbacv1.VerbAll}}),
		role("endpoint-editor", editing, guarded, sets, status, heartbeats()),
		role("editor", editing, sets, status, heartbeats()),
		role("viewer", clusters("get", "list", "watch"), sets, status, heartbeats()),
		role("status-writer", clusters("get", "list", "watch"), rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clusters/status"}, Verbs: []string{"get", "update", "patch"}},
			heartbeats("create", "update", "patch", "delete")),
		role("all-clusters", shown("get", "create", "update", "patch", "delete", "deletecollection")),
		// What each function of the controller does: health alone creates no clusters.
		role("controller:health", clusters("get", "list", "watch"), reports, shown("get", "patch"), heartbeats()),
		role("controller:register-host", clusters("get", "list", "create", "update"), guarded, reports, shown("get", "create", "update", "patch")),
		role("controller:cluster-api", clusters("get", "list", "watch", "create", "update", "delete"), guarded, reports, shown("get", "create", "update", "patch", "delete"),
			rbacv1.PolicyRule{APIGroups: group, Resources: []string{"clustersets/join"}, Verbs: []string{"create"}}),
		role("controller:exports", clusters("get", "list", "watch"), reports, shown("get", "patch")),
		role("controller:cluster-selections", clusters("get", "list", "watch"), reports, shown("get", "patch")),
		role("discovery", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{
			"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/"}}),
		role("basic-user",
			rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}, Verbs: []string{"create"}},
			rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"selfsubjectreviews"}, Verbs: []string{"create"}}),
		// What a server needs that leaves its callers to the registry, as system:auth-delegator.
		role("auth-delegator",
			rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
			rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}}),
	}
}

// bootstrapBindings say who holds bootstrap roles from the start: the admins, the
// registry's controller by the functions in its certificate, and whoever is known at
// all, without which kubectl does not work.
func bootstrapBindings() []rbacv1.ClusterRoleBinding {
	return []rbacv1.ClusterRoleBinding{
		binding("admin", Admins),
		binding("controller:health", contract.HealthGroup),
		binding("controller:register-host", contract.RegisterHostGroup),
		binding("controller:cluster-api", contract.ClusterAPIGroup),
		binding("controller:exports", contract.ExportsGroup),
		binding("controller:cluster-selections", contract.ClusterSelectionsGroup),
		binding("discovery", user.AllAuthenticated),
		binding("basic-user", user.AllAuthenticated),
	}
}

func role(name string, rules ...rbacv1.PolicyRule) rbacv1.ClusterRole {
	return rbacv1.ClusterRole{ObjectMeta: bootstrapMeta(name), Rules: rules}
}

func binding(role, group string) rbacv1.ClusterRoleBinding {
	return rbacv1.ClusterRoleBinding{
		ObjectMeta: bootstrapMeta(role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: prefix + role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
}

// bootstrapMeta marks an object as kube-apiserver marks its own: who sets the
// annotation to "false" keeps the changes.
func bootstrapMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        prefix + name,
		Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
}

package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
)

// Grant is a binding that gives someone rights.
type Grant struct {
	// Binding is a ClusterRoleBinding, and Role the ClusterRole that it gives.
	Binding string `json:"binding"`
	Role    string `json:"role"`
	// Subject is whom the binding names: the user or one of their groups.
	Subject string `json:"subject"`
	// Rights are those of the asked ones that it gives.
	Rights []Right `json:"rights"`

	rules []rbacv1.PolicyRule
}

// policy is what RBAC gives to someone: the same whether or not other authorizers are
// asked, too.
type policy struct {
	grants []Grant
	// lost are bindings of theirs to a role that does not exist.
	lost []string
}

// readPolicy reads the roles and bindings of the cluster that authorizes. The error is
// the server's own.
func readPolicy(ctx context.Context, rbac rbacv1client.RbacV1Interface, w who) (*policy, error) {
	bindings, err := rbac.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	roles, err := rbac.ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return policyOf(bindings.Items, roles.Items, w), nil
}

// policyOf returns what bindings and roles give to someone. Roles of namespaces give
// nothing on clusters, which are in none.
func policyOf(bindings []rbacv1.ClusterRoleBinding, roles []rbacv1.ClusterRole, w who) *policy {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range roles {
		rules[role.Name] = role.Rules
	}
	out := &policy{}
	for _, binding := range bindings {
		at := slices.IndexFunc(binding.Subjects, w.is)
		if at < 0 {
			continue
		}
		found, exists := rules[binding.RoleRef.Name]
		if !exists {
			out.lost = append(out.lost, fmt.Sprintf("ClusterRoleBinding %s gives the ClusterRole %s, which does not exist: it gives nothing", binding.Name, binding.RoleRef.Name))
			continue
		}
		out.grants = append(out.grants, Grant{Binding: binding.Name, Role: binding.RoleRef.Name, Subject: described(binding.Subjects[at]), rules: found})
	}
	slices.SortFunc(out.grants, func(a, b Grant) int { return strings.Compare(a.Binding, b.Binding) })
	slices.Sort(out.lost)
	return out
}

// allows reports whether RBAC allows what a right is about.
func (p *policy) allows(r Right) bool {
	return slices.ContainsFunc(p.grants, func(g Grant) bool { return slices.ContainsFunc(g.rules, r.allows) })
}

// explain returns the bindings that give any of some rights, with those.
func (p *policy) explain(rights []Right) []Grant {
	var out []Grant
	for _, grant := range p.grants {
		for _, right := range rights {
			if slices.ContainsFunc(grant.rules, right.allows) {
				grant.Rights = append(grant.Rights, right)
			}
		}
		if len(grant.Rights) > 0 {
			out = append(out, grant)
		}
	}
	return out
}

// named describes the bindings that give something on a resource by name, for names other
// than those that are known.
func (p *policy) named(resource string, known []string) []string {
	var out []string
	for _, grant := range p.grants {
		var names []string
		for _, rule := range grant.rules {
			for _, name := range rule.ResourceNames {
				given := func(verb string) bool { return Right{verb, resource, name}.allows(rule) }
				if name != "" && !slices.Contains(known, name) && slices.ContainsFunc(decided, given) {
					names = append(names, name)
				}
			}
		}
		if slices.Sort(names); len(names) > 0 {
			out = append(out, fmt.Sprintf("%s (ClusterRoleBinding %s, ClusterRole %s)", enumerate(slices.Compact(names)), grant.Binding, grant.Role))
		}
	}
	return out
}

// most is how many names a line has.
const most = 5

// enumerate returns names for a line.
func enumerate(names []string) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

package authz

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// mostPermissions bounds what a role grants that is compared with what its writer holds: each
	// verb on each resource of each API group, and of each name. Three lists of 2,000 texts are
	// 40 KB, and 8,000,000,000 permissions.
	mostPermissions = 10_000
	// mostCompared bounds the permissions times the rules and paths that each may be compared with.
	mostCompared = 10_000_000
	// mostNamed is how many of the permissions that someone lacks are named, and longestText how
	// many bytes of each text in them.
	mostNamed, longestText = 10, 100
)

// permission is one verb on one resource, or on one path.
type permission struct {
	verb, group, resource, name string
	named                       bool
	path                        string
	onPath                      bool
}

// String says it, each part as long as a person reads it: a body may have a text of a megabyte.
func (p permission) String() string {
	text := fmt.Sprintf("%s on ", short(p.verb))
	switch {
	case p.onPath:
		return text + "path " + short(p.path)
	case p.named:
		return text + fmt.Sprintf("%s in API group %q named %s", short(p.resource), short(p.group), short(p.name))
	}
	return text + fmt.Sprintf("%s in API group %q", short(p.resource), short(p.group))
}

func short(text string) string {
	if len(text) <= longestText {
		return text
	}
	return strings.ToValidUTF8(text[:longestText], "") + "..."
}

// permissions counts what a rule grants. It is no more than an int can be: the texts of all lists
// are in one body.
func permissions(rule *rbacv1.PolicyRule) int {
	onResources := len(rule.APIGroups) * len(rule.Resources) * max(1, len(rule.ResourceNames))
	return len(rule.Verbs) * (onResources + len(rule.NonResourceURLs))
}

// tooMuch returns why rules can't be compared with what someone holds, if that takes too long.
func tooMuch(held, rules []rbacv1.PolicyRule) error {
	against, all := 0, 0
	for i := range held {
		against += 1 + len(held[i].NonResourceURLs)
	}
	for i := range rules {
		n := permissions(&rules[i])
		if all += n; all > mostPermissions {
			return fmt.Errorf("rules[%d] grants %d permissions (API groups x resources x verbs x resource names), and with the rules before it %d, of which at most %d can be compared with what the user holds", i, n, all, mostPermissions)
		}
	}
	if all*against > mostCompared {
		return fmt.Errorf("the rules grant %d permissions (API groups x resources x verbs x resource names), to be compared with %d rules and paths that the user holds, and at most %d comparisons are made", all, against, mostCompared)
	}
	return nil
}

// missing returns what rules grant and someone who holds others lacks: the same as
// k8s.io/component-helpers/auth/rbac/validation.Covers does, but no more than so many, and without
// a rule in memory for each permission or a set for each comparison.
func missing(held, rules []rbacv1.PolicyRule, most int) (out []permission) {
	var holds []*holding
	for i := range held {
		holds = append(holds, holdingOf(&held[i]))
	}
	// lacks notes a permission that no one of them covers, and reports whether there is room for another.
	lacks := func(p permission) bool {
		if !slices.ContainsFunc(holds, func(h *holding) bool { return h.covers(&p) }) && !slices.Contains(out, p) {
			out = append(out, p)
		}
		return len(out) < most
	}
	for i := range rules {
		if !each(&rules[i], lacks) {
			break
		}
	}
	return out
}

// each calls see with each permission of a rule until it returns false, and returns what it did last.
func each(rule *rbacv1.PolicyRule, see func(permission) bool) bool {
	for _, verb := range rule.Verbs {
		for _, path := range rule.NonResourceURLs {
			if !see(permission{verb: verb, path: path, onPath: true}) {
				return false
			}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				p := permission{verb: verb, group: group, resource: resource}
				if len(rule.ResourceNames) == 0 && !see(p) {
					return false
				}
				for _, name := range rule.ResourceNames {
					p.name, p.named = name, true
					if !see(p) {
						return false
					}
				}
			}
		}
	}
	return true
}

// holding is a rule that someone holds, to be looked up in.
type holding struct {
	verbs, groups, resources, names sets.Set[string]
	paths                           []string
}

func holdingOf(rule *rbacv1.PolicyRule) *holding {
	return &holding{sets.New(rule.Verbs...), sets.New(rule.APIGroups...), sets.New(rule.Resources...), sets.New(rule.ResourceNames...), rule.NonResourceURLs}
}

// covers reports whether the rule has a permission. One without a name is for all names.
func (h *holding) covers(p *permission) bool {
	if !h.verbs.HasAny(rbacv1.VerbAll, p.verb) || len(h.names) > 0 && (!p.named || !h.names.Has(p.name)) {
		return false
	}
	if p.onPath {
		return matchesPath(h.paths, p.path)
	}
	if !h.groups.HasAny(rbacv1.APIGroupAll, p.group) {
		return false
	}
	_, subresource, is := strings.Cut(p.resource, "/")
	return h.resources.HasAny(rbacv1.ResourceAll, p.resource) || is && h.resources.Has("*/"+subresource)
}

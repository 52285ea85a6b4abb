package clusterprofile

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterregistry/operator/controller/labelkeys"
)

// Target is a namespace that profiles are published in, and of which clusters.
type Target struct {
	Namespace string
	Selector  labels.Selector
	// Labels are those that are copied.
	Labels labelkeys.AllowList
	// Providers are the names of access providers that may be published: what a client
	// does with one it finds by its name, and writers of entries choose among these alone.
	Providers []string
}

// reserved are prefixes of provider names by which clients run something of their own with
// their own credentials, and no plugin that an administrator has given them for the fleet.
var reserved = []string{"argo-cd-builtin-"}

// reservedIn returns the reserved prefix that a name of a provider has, or "".
func reservedIn(name string) string {
	for _, prefix := range reserved {
		if strings.HasPrefix(strings.ToLower(name), prefix) {
			return prefix
		}
	}
	return ""
}

// ParseTargets reads NAMESPACE[:SELECTOR], each namespace once: a namespace is one
// inventory, in which a cluster is found once. The labels that are copied are those of
// NAMESPACE:KEY[,KEY...], and the providers that may be published NAMESPACE:NAME[,NAME...].
func ParseTargets(texts, copied, providers []string) ([]Target, error) {
	var out []Target
	seen := map[string]bool{}
	for _, text := range texts {
		namespace, selector, _ := strings.Cut(text, ":")
		if faults := validation.IsDNS1123Label(namespace); len(faults) > 0 {
			return nil, fmt.Errorf("%q does not begin with the name of a namespace: %s", text, faults[0])
		}
		if seen[namespace] {
			return nil, fmt.Errorf("namespace %q is there twice: give it one selector, such as %s:'tier in (gold, silver)'", namespace, namespace)
		}
		seen[namespace] = true
		parsed, err := labels.Parse(selector)
		if err != nil {
			return nil, fmt.Errorf("%q has no valid label selector behind the namespace: %w", text, err)
		}
		out = append(out, Target{Namespace: namespace, Selector: parsed})
	}
	for _, text := range copied {
		in, keys, err := listFor(out, text, "labels are to be copied to")
		if err != nil {
			return nil, err
		}
		if in.Labels, err = labelkeys.Parse(keys); err != nil {
			return nil, err
		}
	}
	for _, text := range providers {
		in, names, err := listFor(out, text, "providers are allowed in")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if prefix := reservedIn(name); prefix != "" {
				return nil, fmt.Errorf("the provider %q has the reserved prefix %s: clients would run a program of their own with credentials that are not for the fleet; leave it out, and give clients a plugin under another name", name, prefix)
			}
			if name == "" {
				return nil, fmt.Errorf("%q has a provider without a name: write NAMESPACE:NAME,NAME", text)
			}
		}
		in.Providers = names
	}
	return out, nil
}

// listFor returns the target of NAMESPACE:ITEM[,ITEM...], and the items.
func listFor(targets []Target, text, what string) (*Target, []string, error) {
	namespace, items, _ := strings.Cut(text, ":")
	i := slices.IndexFunc(targets, func(t Target) bool { return t.Namespace == namespace })
	if i < 0 {
		return nil, nil, fmt.Errorf("%s namespace %q, in which no ClusterProfiles are published", what, namespace)
	}
	return &targets[i], strings.Split(items, ","), nil
}

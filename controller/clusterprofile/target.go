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
}

// ParseTargets reads NAMESPACE[:SELECTOR], each namespace once: a namespace is one
// inventory, in which a cluster is found once. The labels that are copied are those of
// NAMESPACE:KEY[,KEY...].
func ParseTargets(texts, copied []string) ([]Target, error) {
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
		namespace, keys, _ := strings.Cut(text, ":")
		i := slices.IndexFunc(out, func(t Target) bool { return t.Namespace == namespace })
		if i < 0 {
			return nil, fmt.Errorf("labels are to be copied to namespace %q, in which no ClusterProfiles are published", namespace)
		}
		var err error
		if out[i].Labels, err = labelkeys.Parse(strings.Split(keys, ",")); err != nil {
			return nil, err
		}
	}
	return out, nil
}

package clusterprofile

import (
	"fmt"
	"slices"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Target is a namespace that profiles are published in, and of which clusters.
type Target struct {
	Namespace string
	Selector  labels.Selector
	// Labels are the keys of labels that are copied, and prefixes that end with "/*".
	Labels []string
}

// copies reports whether a label of a cluster is shown.
func (t Target) copies(key string) bool {
	return slices.ContainsFunc(t.Labels, func(allowed string) bool {
		prefix, all := strings.CutSuffix(allowed, "*")
		return key == allowed || all && strings.HasPrefix(key, prefix)
	})
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
		out[i].Labels = strings.Split(keys, ",")
		if err := checkLabels(out[i].Labels); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkLabels returns what is wrong with the labels that are to be copied.
func checkLabels(allowed []string) error {
	for _, text := range allowed {
		if prefix, all := strings.CutSuffix(text, "/*"); all {
			if faults := validation.IsDNS1123Subdomain(prefix); len(faults) > 0 {
				return fmt.Errorf("%q is not a prefix of labels, such as example.com/*: %s", text, faults[0])
			}
			continue
		}
		if faults := metav1validation.ValidateLabelName(text, field.NewPath("label")); len(faults) > 0 {
			return fmt.Errorf("%q is not the key of a label, nor a prefix such as example.com/*: %s", text, faults[0].Detail)
		}
	}
	return nil
}

package clusterprofile

import (
	"fmt"
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
}

// ParseTargets reads NAMESPACE[:SELECTOR], each namespace once: a namespace is one
// inventory, in which a cluster is found once.
func ParseTargets(texts []string) ([]Target, error) {
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
	return out, nil
}

// CheckLabels returns what is wrong with the labels that are to be copied.
func CheckLabels(allowed []string) error {
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

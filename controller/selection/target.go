package selection

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterregistry/operator/controller/selection/decide"
)

// Target is a namespace whose selections are acted on, and which clusters it may see.
type Target struct {
	Namespace string
	Selector  labels.Selector
	// ClusterSets are those whose clusters it may see; nil for all clusters.
	ClusterSets []string
}

// Shows reports whether the namespace may see a cluster of a ClusterSet with some labels.
func (t Target) Shows(set string, of map[string]string) bool {
	return t.Selector.Matches(labels.Set(of)) && (t.ClusterSets == nil || slices.Contains(t.ClusterSets, set))
}

// sees reports whether the namespace may see a cluster.
func (t Target) sees(view *decide.View) bool { return t.Shows(view.ClusterSet, view.Labels) }

// ParseTargets reads NAMESPACE[:SELECTOR], each namespace once. The ClusterSets of a namespace
// are NAMESPACE:SET[,SET...].
func ParseTargets(texts, sets []string) ([]Target, error) {
	var out []Target
	at := map[string]int{}
	for _, text := range texts {
		namespace, selector, _ := strings.Cut(text, ":")
		if faults := validation.IsDNS1123Label(namespace); len(faults) > 0 {
			return nil, fmt.Errorf("%q does not begin with the name of a namespace: %s", text, faults[0])
		}
		if _, twice := at[namespace]; twice {
			return nil, fmt.Errorf("namespace %q is there twice: give it one selector, such as %s:'tier in (gold, silver)'", namespace, namespace)
		}
		parsed, err := labels.Parse(selector)
		if err != nil {
			return nil, fmt.Errorf("%q has no valid label selector behind the namespace: %w", text, err)
		}
		at[namespace] = len(out)
		out = append(out, Target{Namespace: namespace, Selector: parsed})
	}
	for _, text := range sets {
		namespace, names, _ := strings.Cut(text, ":")
		i, known := at[namespace]
		if !known {
			return nil, fmt.Errorf("ClusterSets are for namespace %q, whose ClusterSelections are not acted on", namespace)
		}
		for name := range strings.SplitSeq(names, ",") {
			if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
				return nil, fmt.Errorf("%q has %q, which is not the name of a ClusterSet: %s", text, name, faults[0])
			}
			out[i].ClusterSets = append(out[i].ClusterSets, name)
		}
	}
	return out, nil
}

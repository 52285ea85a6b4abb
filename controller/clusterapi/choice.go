package clusterapi

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/labelkeys"
)

// Template makes the name of an entry from {namespace} and {name} of its Cluster.
type Template struct{ text string }

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// ParseTemplate returns a template that makes a valid name of at least some Clusters.
func ParseTemplate(text string) (Template, error) {
	for _, found := range placeholder.FindAllString(text, -1) {
		if found != "{namespace}" && found != "{name}" {
			return Template{}, fmt.Errorf("%q has %s: only {namespace} and {name} are known", text, found)
		}
	}
	if !strings.Contains(text, "{name}") {
		return Template{}, fmt.Errorf("%q lacks {name}: all clusters of a namespace would have one name", text)
	}
	t := Template{text}
	if _, err := t.Name("n", "n"); err != nil {
		return Template{}, fmt.Errorf("%q makes no valid names: %w", text, err)
	}
	return t, nil
}

// Name returns the name of the entry of a Cluster, or why it is not a valid one.
func (t Template) Name(namespace, name string) (string, error) {
	made := strings.NewReplacer("{namespace}", namespace, "{name}", name).Replace(t.text)
	if faults := validation.IsDNS1123Label(made); len(faults) > 0 {
		return "", fmt.Errorf("%q is not the name of a cluster: %s", made, faults[0])
	}
	return made, nil
}

// ParseAllowList returns the labels of Clusters that are copied: all but those of the registry.
func ParseAllowList(texts []string) (labelkeys.AllowList, error) {
	for _, text := range texts {
		if group, _, _ := strings.Cut(text, "/"); group == v1beta1.GroupName {
			return labelkeys.AllowList{}, fmt.Errorf("%q: labels of %s say something of entries of the registry, and are not copied", text, v1beta1.GroupName)
		}
	}
	return labelkeys.Parse(texts)
}

// selected reports whether a Cluster belongs in the registry, given the labels of its
// namespace.
func (c *Controller) selected(source *clusterv1.Cluster, namespace map[string]string) bool {
	if source.Labels[IgnoreLabel] == "true" || namespace[IgnoreLabel] == "true" {
		return false
	}
	all := maps.Clone(namespace)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, source.Labels)
	return c.Selector.Matches(labels.Set(all))
}

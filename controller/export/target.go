package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/controller/labelkeys"
)

// Target is a namespace that objects of a format are published in, and of which clusters.
type Target struct {
	format.Target
	Format format.Format
	// Selection is the ClusterSelection in the namespace that chooses the clusters, empty for all
	// that Selector selects.
	Selection string
	// Limit reports whether the namespace may see a cluster by its selections: whoever writes
	// their status there has no other one published. Nil says that no one acts on them, so that no
	// one knows what it may see.
	Limit func(*v1beta1.Cluster) bool
}

// unattended reports whether a ClusterSelection is to choose the clusters, and no one acts on those
// of the namespace.
func (t Target) unattended() bool { return t.Selection != "" && t.Limit == nil }

// admits reports whether a cluster may be published, if it is chosen.
func (t Target) admits(cluster *v1beta1.Cluster) bool {
	return t.Selector.Matches(labels.Set(cluster.Labels)) && (t.Selection == "" || t.Limit != nil && t.Limit(cluster))
}

// key tells a target from the others.
func (t Target) key() string { return t.Namespace + "/" + t.Format.Kind().Name }

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

// entry is what an export says.
type entry struct {
	Namespace string                `json:"namespace"`
	Format    string                `json:"format"`
	Selector  *metav1.LabelSelector `json:"selector,omitempty"`
	Selection string                `json:"selection,omitempty"`
	Labels    []string              `json:"labels,omitempty"`
	Providers []string              `json:"providers,omitempty"`
	SignIn    []format.SignIn       `json:"signIn,omitempty"`
	Project   string                `json:"project,omitempty"`
}

// ParseTargets reads exports from a list in JSON, each format once in a namespace: that is one
// inventory, in which a cluster is found once.
func ParseTargets(content []byte, formats map[string]format.Format) ([]Target, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var entries []entry
	if err := decoder.Decode(&entries); err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("it has no export: add one, or leave the file out")
	}
	var out []Target
	for i, e := range entries {
		target, err := e.target(formats)
		if err != nil {
			return nil, fmt.Errorf("export %d: %w", i, err)
		}
		if slices.ContainsFunc(out, func(t Target) bool { return t.key() == target.key() }) {
			return nil, fmt.Errorf("export %d: namespace %q has the format %s twice: give it one selector, such as tier in (gold, silver)", i, e.Namespace, e.Format)
		}
		out = append(out, target)
	}
	return out, nil
}

// target returns what an export says, or what is wrong with it.
func (e entry) target(formats map[string]format.Format) (Target, error) {
	out := Target{Target: format.Target{Namespace: e.Namespace, Providers: e.Providers, SignIn: e.SignIn, Project: e.Project}, Selection: e.Selection}
	if faults := validation.IsDNS1123Label(e.Namespace); len(faults) > 0 {
		return out, fmt.Errorf("%q is not the name of a namespace: %s", e.Namespace, faults[0])
	}
	var known bool
	if out.Format, known = formats[e.Format]; !known {
		return out, fmt.Errorf("there is no format %q: set one of %s", e.Format, strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
	}
	if e.Selection != "" {
		if faults := validation.IsDNS1123Label(e.Selection); len(faults) > 0 {
			return out, fmt.Errorf("%q is not the name of a ClusterSelection: %s", e.Selection, faults[0])
		}
		if e.Selector != nil {
			return out, fmt.Errorf("it has a selector and a selection: set one of them, since a ClusterSelection says itself which clusters it selects")
		}
	}
	var err error
	out.Selector = labels.Everything() // an empty selector and none are the same here
	if e.Selector != nil {
		if out.Selector, err = metav1.LabelSelectorAsSelector(e.Selector); err != nil {
			return out, fmt.Errorf("its label selector is not valid: %w", err)
		}
	}
	if out.Labels, err = labelkeys.Parse(e.Labels); err != nil {
		return out, err
	}
	for _, name := range e.Providers {
		if prefix := reservedIn(name); prefix != "" {
			return out, fmt.Errorf("the provider %q has the reserved prefix %s: clients would run a program of their own with credentials that are not for the fleet; leave it out, and give clients a plugin under another name", name, prefix)
		}
		if name == "" {
			return out, fmt.Errorf("it has a provider without a name: remove it")
		}
	}
	if takes := out.Format.Kind().SignIn; len(takes) > 0 != (len(out.SignIn) > 0) {
		return out, fmt.Errorf("signIn is for formats that say how clients sign in, which need it: %s", e.Format)
	}
	for i := range out.SignIn {
		if err := out.SignIn[i].Complete(out.Format.Kind().SignIn); err != nil {
			return out, err
		}
	}
	return out, nil
}

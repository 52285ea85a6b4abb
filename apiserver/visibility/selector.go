package visibility

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// SetField is the field of clusters that a view selects by.
const SetField = "spec.clusterSet"

// inSets selects the clusters in some sets. It is not empty, whatever the sets are, so that
// no list says how many clusters are left: that would count those that are not seen.
type inSets sets.Set[string]

var _ fields.Selector = inSets{}

// Matches reports whether a cluster is in one of the sets.
func (s inSets) Matches(of fields.Fields) bool {
	set := of.Get(SetField)
	return set != "" && sets.Set[string](s).Has(set)
}

// Empty is false.
func (inSets) Empty() bool { return false }

// RequiresExactMatch returns the set when there is one alone, so that a list is served from
// the index of the watch cache.
func (s inSets) RequiresExactMatch(field string) (string, bool) {
	if field != SetField || len(s) != 1 {
		return "", false
	}
	for set := range s {
		return set, true
	}
	return "", false
}

// Transform changes nothing: the field has this name in storage, and no client wrote it.
func (s inSets) Transform(fields.TransformFunc) (fields.Selector, error) { return s, nil }

// Requirements returns the one that can be written as such, if there is one.
func (s inSets) Requirements() fields.Requirements {
	set, one := s.RequiresExactMatch(SetField)
	if !one {
		return nil
	}
	return fields.Requirements{{Operator: selection.Equals, Field: SetField, Value: set}}
}

// String names the sets.
func (s inSets) String() string {
	return SetField + " in (" + strings.Join(sets.List(sets.Set[string](s)), ",") + ")"
}

// DeepCopySelector returns a copy.
func (s inSets) DeepCopySelector() fields.Selector { return inSets(sets.Set[string](s).Clone()) }

package feed

import (
	"errors"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/labels"
)

const (
	// selectorKey is the one parameter that there is.
	selectorKey = "labelSelector"
	// maxSelector and maxRequirements bound what it costs to select by one.
	maxSelector, maxRequirements = 2048, 32
)

// query is what a request asks for.
type query struct {
	selector labels.Selector
}

// parseQuery reads the query of a URL. Nothing in it is left out: an answer of all clusters to who
// asked for some would have them deploy everywhere.
func parseQuery(raw string) (query, error) {
	all := query{labels.Everything()}
	if raw == "" {
		return all, nil
	}
	values, err := url.ParseQuery(raw) // unlike URL.Query, which drops what it can't read
	if err != nil {
		return query{}, fmt.Errorf("the query can't be read: %w; percent-encode its values", err)
	}
	for key := range values {
		if key != selectorKey {
			return query{}, fmt.Errorf("there is no parameter %q: the one that there is is %s", key, selectorKey)
		}
	}
	given := values[selectorKey]
	switch {
	case len(given) != 1:
		return query{}, fmt.Errorf("%s is there %d times: give it once", selectorKey, len(given))
	case given[0] == "":
		return query{}, errors.New(selectorKey + " is empty: leave it out for all clusters")
	case len(given[0]) > maxSelector:
		return query{}, fmt.Errorf("%s has more than %d characters", selectorKey, maxSelector)
	}
	selector, err := labels.Parse(given[0])
	if err != nil {
		return query{}, fmt.Errorf("%s is not a valid label selector: %w", selectorKey, err)
	}
	requirements, selectable := selector.Requirements()
	switch {
	case !selectable || len(requirements) == 0:
		return query{}, errors.New(selectorKey + " selects by nothing: leave it out for all clusters")
	case len(requirements) > maxRequirements:
		return query{}, fmt.Errorf("%s has more than %d requirements", selectorKey, maxRequirements)
	}
	return query{selector}, nil
}

// key tells queries apart that have different answers.
func (q query) key() string { return q.selector.String() }

// selects reports whether a query asks for an entry.
func (q query) selects(e *entry) bool { return q.selector.Matches(labels.Set(e.all)) }

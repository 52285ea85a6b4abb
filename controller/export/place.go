package export

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/controller/export/format"
)

// byPlace is the index of objects by where they lead.
const byPlace = "place"

// claim is that the object of a cluster is about to lead to a place: the informer does not show it
// at once.
type claim struct {
	name string
	at   time.Time
}

func (p *publisher) indexers() cache.Indexers {
	return cache.Indexers{byPlace: func(object any) ([]string, error) {
		have, is := object.(*unstructured.Unstructured)
		if !is {
			return nil, nil
		}
		if ours, _ := p.Format.Ours(have); !ours {
			return nil, nil
		}
		return []string{p.Format.Leads(have)}, nil
	}}
}

// occupant returns the name of the cluster whose object leads to a place, if it is not the named
// one: of several, that of the oldest object. Those of clusters that are no longer selected, or whose
// entries have moved on, do not count: they are about to go. Whoever asks for a place that no one has
// claims it.
func (s *session) occupant(name, place string) string {
	objects, err := s.informer.GetIndexer().ByIndex(byPlace, place)
	if err != nil {
		return "" // there is such an index
	}
	var first *unstructured.Unstructured
	for _, object := range objects {
		have := object.(*unstructured.Unstructured)
		if is, ok := s.clusterOf(keyOf(have)); ok && s.wants(is, place) && (first == nil || older(have, first)) {
			first = have
		}
	}
	if first != nil {
		delete(s.claims, place)
		if is, _ := s.clusterOf(keyOf(first)); is != name {
			return is
		}
		return ""
	}
	if is, claimed := s.claims[place]; claimed && is.name != name && s.Clock.Since(is.at) < patience {
		return is.name
	}
	s.claims[place] = claim{name: name, at: s.Clock.Now()}
	return ""
}

// wants reports whether the object of a cluster is to lead to a place, by what its entry says.
func (s *session) wants(name, place string) bool {
	cluster := s.selected(name)
	if cluster == nil {
		return false
	}
	endpoint, ok := format.EndpointOf(cluster)
	return ok && format.Place(endpoint) == place
}

// older reports whether one object came before another.
func older(a, b *unstructured.Unstructured) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if at.Equal(&bt) {
		return a.GetName() < b.GetName()
	}
	return at.Before(&bt)
}

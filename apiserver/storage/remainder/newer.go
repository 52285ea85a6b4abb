package remainder

import (
	"encoding/json"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// interactiveModes is the member for the field of that name of exec access, and
// clusterSet that for the field of the spec, both of which v1beta1 has had since v0.4.0.
// In the stored object itself they are always empty: a server of v0.3.0 would drop them
// with the next write, but it carries members that it doesn't know. So an object is also
// stored in the same bytes by both.
const (
	interactiveModes = "interactiveModes"
	clusterSet       = "clusterSet"
)

// newer is what v0.3.0 has no field for of a cluster.
type newer struct {
	modes      modes
	clusterSet string
}

// takeOut empties the fields that v0.3.0 doesn't have in a cluster that is to be stored,
// and returns what has to be stored beside it. It shares nothing that it changes.
func takeOut(cluster *clusterregistry.Cluster) newer {
	out := newer{takeModes(cluster), cluster.Spec.ClusterSet}
	cluster.Spec.ClusterSet = ""
	return out
}

// set adds a member for each field that is set.
func (n newer) set(members map[string]json.RawMessage) error {
	if len(n.modes) > 0 {
		if err := set(members, interactiveModes, n.modes); err != nil {
			return err
		}
	}
	if n.clusterSet != "" {
		return set(members, clusterSet, n.clusterSet)
	}
	return nil
}

// takeNewer takes the fields' members out of a remainder.
func takeNewer(members map[string]json.RawMessage) (newer, error) {
	var out newer
	for name, field := range map[string]any{interactiveModes: &out.modes, clusterSet: &out.clusterSet} {
		raw, ok := members[name]
		if !ok {
			continue
		}
		if err := json.Unmarshal(raw, field); err != nil {
			return newer{}, err
		}
		delete(members, name)
	}
	return out, nil
}

// addTo gives a cluster that was read the fields: what is stored with it, as a later
// release may do, else what is stored beside it. The label of its set follows, whatever a
// client of v0.3.0 has made of it.
func (n newer) addTo(cluster *clusterregistry.Cluster) {
	n.modes.addTo(cluster)
	if cluster.Spec.ClusterSet == "" {
		cluster.Spec.ClusterSet = n.clusterSet
	}
	cluster.Label()
}

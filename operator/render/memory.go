package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
)

// remembered is how many results of kustomize are kept, of up to 200 KiB each. A registry that is
// at rest has the same one in each reconcile, while servers and members are of two layouts two;
// of many registries, each has another.
const remembered = 64

// memory keeps what kustomize has made of overlays, which decide on that alone: most of what
// rendering costs.
type memory struct{ made *lru.Cache }

func newMemory() memory { return memory{lru.New(remembered)} }

// of returns what is made of an overlay, as the caller's own.
func (m memory) of(overlay string, build func() ([]*unstructured.Unstructured, error)) ([]*unstructured.Unstructured, error) {
	known, ok := m.made.Get(overlay)
	made, _ := known.([]*unstructured.Unstructured)
	if !ok {
		var err error
		if made, err = build(); err != nil {
			return nil, err
		}
		m.made.Add(overlay, made)
	}
	out := make([]*unstructured.Unstructured, len(made))
	for i := range made {
		out[i] = made[i].DeepCopy()
	}
	return out, nil
}

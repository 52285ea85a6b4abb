package render

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// remembered is how many results of kustomize are kept. A registry that is at rest has the same
// one in each reconcile; of many registries, each has another.
const remembered = 16

// memory keeps what kustomize has made of overlays, which decide on that alone: most of what
// rendering costs. The zero value is ready to use.
type memory struct {
	lock sync.Mutex
	made map[string][]*unstructured.Unstructured
	// order has the overlays, the one that was used last at the end.
	order []string
}

// of returns what is made of an overlay, as the caller's own.
func (m *memory) of(overlay string, build func() ([]*unstructured.Unstructured, error)) ([]*unstructured.Unstructured, error) {
	m.lock.Lock()
	made, known := m.made[overlay]
	m.lock.Unlock()
	if !known {
		var err error
		if made, err = build(); err != nil {
			return nil, err
		}
	}
	m.keep(overlay, made)
	out := make([]*unstructured.Unstructured, len(made))
	for i := range made {
		out[i] = made[i].DeepCopy()
	}
	return out, nil
}

// keep remembers what was used now, and forgets what was not for longest.
func (m *memory) keep(overlay string, made []*unstructured.Unstructured) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.made == nil {
		m.made = map[string][]*unstructured.Unstructured{}
	}
	m.made[overlay] = made
	m.order = append(slices.DeleteFunc(m.order, func(other string) bool { return other == overlay }), overlay)
	if len(m.order) > remembered {
		delete(m.made, m.order[0])
		m.order = slices.Delete(m.order, 0, 1)
	}
}

package keychange

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Walks are how far the clusters of each registry were stored again under other keys, by the UIDs
// of registries. The zero value is ready to use.
type Walks struct{ of sync.Map }

// Of returns how far the clusters of a registry were stored again.
func (w *Walks) Of(registry types.UID) Walk {
	if known, is := w.of.Load(registry); is {
		return known.(Walk)
	}
	return Walk{}
}

// Forget has the clusters of a registry be gone through again.
func (w *Walks) Forget(registry types.UID) { w.of.Delete(registry) }

func (w *Walks) store(registry types.UID, walk Walk) { w.of.Store(registry, walk) }

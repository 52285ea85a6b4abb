package upgrade

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/operator/operation/upgrade/migration"
)

// note is what the operator remembers of an upgrade from one reconcile of a registry
// to the next, and finds out again after a restart.
type note struct {
	// failing is since when this operator has seen the new servers fail.
	failing time.Time
	// walk is how far the stored clusters were gone through.
	walk migration.Walk
}

// Notes are what the operator remembers of the upgrades of all registries. The zero value
// is ready to use.
type Notes struct {
	lock sync.Mutex
	all  map[types.UID]note
}

// of returns what is remembered of a registry.
func (n *Notes) of(registry types.UID) note {
	n.lock.Lock()
	defer n.lock.Unlock()
	return n.all[registry]
}

// change changes what is remembered of a registry, and returns it.
func (n *Notes) change(registry types.UID, change func(*note)) note {
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.all == nil {
		n.all = map[types.UID]note{}
	}
	one := n.all[registry]
	change(&one)
	n.all[registry] = one
	return one
}

// Forget forgets a registry.
func (n *Notes) Forget(registry types.UID) {
	n.lock.Lock()
	defer n.lock.Unlock()
	delete(n.all, registry)
}

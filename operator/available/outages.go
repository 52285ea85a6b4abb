package available

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Outages remembers since when the reads of each registry fail. The zero value is
// ready to use.
type Outages struct {
	lock  sync.Mutex
	since map[client.ObjectKey]time.Time
}

// begin returns since when reads fail: now, unless they did before.
func (o *Outages) begin(registry client.ObjectKey, now time.Time) time.Time {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.since == nil {
		o.since = map[client.ObjectKey]time.Time{}
	}
	if _, failing := o.since[registry]; !failing {
		o.since[registry] = now
	}
	return o.since[registry]
}

// End forgets a registry whose reads succeed, or that is gone.
func (o *Outages) End(registry client.ObjectKey) {
	o.lock.Lock()
	defer o.lock.Unlock()
	delete(o.since, registry)
}

package provider

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

const (
	// askProbed is the time between two questions whether clusters are probed.
	askProbed = 15 * time.Second
	// unheard is for how long whoever probes clusters may be silent. A leader that is replaced
	// is for less than a minute, and clocks differ.
	unheard = 2 * time.Minute
)

// Renewed returns a function for Options.Probed that goes by a Lease: the one by which the
// controller of a registry elects its leader is named after the ClusterRegistry, with -controller
// at the end, in its namespace in the host cluster. The program needs the right to get it.
func Renewed(leases coordination.LeaseInterface, name string) func(context.Context) (time.Time, error) {
	return func(ctx context.Context) (time.Time, error) {
		lease, err := leases.Get(ctx, name, metav1.GetOptions{})
		switch {
		case err != nil:
			return time.Time{}, fmt.Errorf("read the Lease of who probes clusters: %w", err)
		case lease.Spec.RenewTime == nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "":
			return time.Time{}, fmt.Errorf("the Lease %s has no holder", name)
		}
		return lease.Spec.RenewTime.Time, nil
	}
}

// probing is what is known of whether clusters are probed.
type probing struct {
	// said is what was returned last, seen when it was first, and failed why nothing is.
	said, seen time.Time
	failed     error
}

// note notes an answer. The first one counts by its time, and any other one that is new by when
// it came, for which the clocks need not agree.
func (p *probing) note(said time.Time, err error, now time.Time) {
	p.failed = err
	switch {
	case err != nil || said.Equal(p.said):
		return
	case p.said.IsZero() && said.Before(now):
		p.seen = said
	default:
		p.seen = now
	}
	p.said = said
}

// err says why conditions can't be believed, nil when they can.
func (p *probing) err(now time.Time) error {
	switch {
	case !p.seen.IsZero() && now.Sub(p.seen) <= unheard:
		return nil
	case p.failed != nil:
		return fmt.Errorf("it is not known whether its condition Available is of now: %w", p.failed)
	}
	return fmt.Errorf("its condition Available may be out of date: nothing has probed the clusters of the registry since %s", p.said.UTC().Format(time.RFC3339))
}

// watchProbing asks whether clusters are probed until ctx ends, and has all be looked at again when
// that changes.
func (p *Provider) watchProbing(ctx context.Context) {
	ticks := time.NewTicker(askProbed)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if !p.askProbing(ctx) {
			continue
		}
		all, err := p.lister.List(labels.Everything())
		if err != nil {
			p.logger().Error(err, "read Clusters from the cache")
		}
		for _, c := range all {
			p.queue.Add(c.Name)
		}
	}
}

// askProbing asks once whether clusters are probed, and reports whether that has changed.
func (p *Provider) askProbing(ctx context.Context) (changed bool) {
	asking, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	said, err := p.options.Probed(asking)
	now := time.Now()
	p.lock.Lock()
	defer p.lock.Unlock()
	p.probing.note(said, err, now)
	before := p.unprobed
	if p.unprobed = p.probing.err(now); (before == nil) == (p.unprobed == nil) {
		return false
	}
	if p.unprobed != nil {
		p.log.Error(p.unprobed, "No further clusters are engaged")
	}
	return true
}

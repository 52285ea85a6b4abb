package clusterregistry

import (
	"context"
	"time"

	"github.com/clusterregistry/operator/operator/etcd"
)

const (
	// clustersPrefix is where servers store clusters (their --etcd-prefix and the
	// resource).
	clustersPrefix = "/registry/" + registryGroup + "/clusters/"
	// rewriteTime is for how long clusters are rewritten before the rest of the
	// registry is looked at again. One request may take longer.
	rewriteTime = 5 * time.Second
)

// rewrite is complete when no cluster is stored in another version of the API than
// the one that the new release stores. It goes by what etcd holds, a page in each
// pass, again and again until it finds nothing to rewrite. What else a rewrite is
// good for is done in the first walk only, for clients may undo it.
func (r *Reconciler) rewrite(ctx context.Context, s *scope) *hold {
	to, until := s.upgrade.to, time.Now().Add(rewriteTime)
	at := r.notes.of(s.registry.UID).walk
	page, err := s.etcdAccess.Stored(ctx, clustersPrefix, at.after, outdated(to.Stores, to.RenewsV1alpha1 && !at.again))
	if err != nil {
		return s.waits("in which version clusters are stored is not known: %s", err)
	}
	client, err := r.client(ctx, s)
	if err != nil {
		return failed(err)
	}
	rewritten, err := at.rewrite(page, func(name string) error { return client.Rewrite(ctx, to.Stores, name) }, func() bool { return time.Now().After(until) })
	stored, total := at.seen+page.Objects-len(page.Outdated)+rewritten, at.seen+page.Objects+page.Left
	next, complete := at.next(page, rewritten)
	if complete {
		return nil
	}
	r.notes.change(s.registry.UID, func(n *note) { n.walk = next })
	s.progress(int32(stored), int32(total))
	if err != nil {
		return s.waits("%d of %d clusters are stored as %s does; %s", stored, total, to.Version, err)
	}
	return s.waits("%d of %d clusters are stored as %s does", stored, total, to.Version).in(atOnce)
}

// walk is how far the stored clusters were gone through. An operator that was
// restarted begins with the first page: all that is done already is only read.
type walk struct {
	// after is the name of the last cluster of the pages that are done, and seen
	// counts the clusters of these.
	after string
	seen  int
	// found is true when a cluster of this walk was to be rewritten, and again when
	// there was a walk before this one.
	found, again bool
}

// rewrite rewrites the clusters of a page that need it, until the time is over,
// and returns how many it was. One is always tried.
func (w walk) rewrite(page etcd.Stored, one func(name string) error, over func() bool) (rewritten int, err error) {
	for _, name := range page.Outdated {
		if rewritten > 0 && over() {
			break
		}
		if err := one(name); err != nil {
			return rewritten, err
		}
		rewritten++
	}
	return rewritten, nil
}

// next returns where to go on: with the same page as long as not all of it is
// rewritten, and from the first page again when this walk found anything. It is
// complete when it found nothing from the first page to the last.
func (w walk) next(page etcd.Stored, rewritten int) (next walk, complete bool) {
	w.found = w.found || len(page.Outdated) > 0
	switch {
	case rewritten < len(page.Outdated):
		return w, false
	case page.Left > 0:
		return walk{after: page.Last, seen: w.seen + page.Objects, found: w.found, again: w.again}, false
	}
	return walk{again: true}, !w.found
}

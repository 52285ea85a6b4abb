package clusterregistry

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/registryclient"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// rewriteTime is for how long clusters are rewritten before the rest of the
// registry is looked at again. One request may take longer.
const rewriteTime = 5 * time.Second

// rewrite is complete when no cluster is stored in another version of the API than
// the one that the new release stores. It goes by what etcd holds, again and again
// until it finds none. What else a rewrite is good for is done in the first walk only,
// for clients may undo it, and only where it is not refused.
func (r *Reconciler) rewrite(ctx context.Context, s *scope) verdict.Verdict {
	to, until := s.upgrade.to, time.Now().Add(rewriteTime)
	at := r.notes.of(s.registry.UID).walk
	page, err := at.read(ctx, s.etcdAccess, to)
	if err != nil {
		return s.waits("in which version clusters are stored is not known: %s", err)
	}
	client, err := r.client(ctx, s)
	if err != nil {
		return failed(err)
	}
	next, rewritten, err := at.rewrite(page, func(name string) error { return client.Rewrite(ctx, to.Stores, name) }, func() bool { return time.Now().After(until) })
	if next.complete {
		r.tellRefused(s, next.refused)
		return done
	}
	r.notes.change(s.registry.UID, func(n *note) { n.walk = next })
	stored, total := at.seen+page.Objects-len(page.outdated)+rewritten, at.seen+page.Objects+page.Left
	s.progress(int32(stored), int32(total))
	if err != nil {
		return s.waits("%d of %d clusters are stored as %s does; %s", stored, total, to.Version, err)
	}
	return s.waits("%d of %d clusters are stored as %s does", stored, total, to.Version).In(atOnce)
}

// page is a page of stored clusters, and which of them are to be written again.
type page struct {
	etcd.Stored
	outdated []outdated
}

// outdated is a cluster that is to be written again.
type outdated struct {
	name string
	need need
	// position counts the clusters of the page up to this one.
	position int
}

// walk is how far the stored clusters were gone through. An operator that was
// restarted begins with the first page: all that is done already is only read.
type walk struct {
	// after is the name of the last cluster that is done, and seen counts the clusters
	// up to it.
	after string
	seen  int
	// found is true when a cluster of this walk was stored in another version, and
	// again when there was a walk before this one.
	found, again bool
	// refused are the renewals that were refused, of all walks.
	refused refusals
	// complete is true when a walk from the first cluster to the last has found none
	// that is stored in another version.
	complete bool
}

// refusals are renewals of clusters that were refused.
type refusals struct {
	count int
	// first is the error of the first one, with the cluster's name.
	first string
}

// read reads the next page of a walk.
func (w walk) read(ctx context.Context, access etcd.Access, to version.Release) (page, error) {
	out, objects, needOf := page{}, 0, needs(to.Stores, to.RenewsV1alpha1 && !w.again)
	stored, err := access.Stored(ctx, contract.ObjectPrefix(registryGroup, "clusters"), w.after, func(name string, content []byte) error {
		objects++
		need, err := needOf(content)
		if need != needNothing {
			out.outdated = append(out.outdated, outdated{name, need, objects})
		}
		return err
	})
	out.Stored = stored
	return out, err
}

// rewrite rewrites the clusters of a page that need it, until the time is over. One is
// always tried. It returns where to go on, and how many are done: a renewal that was
// refused is, too, for it would be refused again. What is done is not done again in
// this walk, even if it did not last.
func (w walk) rewrite(page page, one func(name string) error, over func() bool) (next walk, done int, err error) {
	before := w.seen
	for _, cluster := range page.outdated {
		if done > 0 && over() {
			return w, done, nil
		}
		err := one(cluster.name)
		switch {
		case cluster.need == needRenewal && registryclient.Refused(err):
			w.refused = w.refused.and(err)
		case err != nil:
			return w, done, err
		}
		w.found = w.found || cluster.need == needVersion
		w.after, w.seen = cluster.name, before+cluster.position
		done++
	}
	switch {
	case page.Left > 0:
		w.after, w.seen = page.Last, before+page.Objects
	case w.found:
		w = walk{again: true, refused: w.refused}
	default:
		w.complete = true
	}
	return w, done, nil
}

// and adds a renewal that was refused.
func (r refusals) and(err error) refusals {
	if r.count == 0 {
		r.first = bounded(err.Error())
	}
	r.count++
	return r
}

// tellRefused tells, once all is rewritten, which clusters v1alpha1 still shows as
// older releases did.
func (r *Reconciler) tellRefused(s *scope, refused refusals) {
	if refused.count == 0 {
		return
	}
	message := bounded(fmt.Sprintf("clients of v1alpha1 see %d of the clusters as earlier releases showed them, each until its endpoints are next changed through v1beta1: an update without a change was refused, first: %s", refused.count, refused.first))
	r.event(s, corev1.EventTypeWarning, "MigrationRefused", string(operatorv1alpha1.PhaseStorageMigration), "%s", message)
	history.Remark(s.registry, message)
}

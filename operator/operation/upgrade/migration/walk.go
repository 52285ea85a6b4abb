package migration

import (
	"context"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/registryclient"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// Page is a page of stored clusters, and which of them are to be written again.
type Page struct {
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

// Walk is how far the stored clusters were gone through. An operator that was
// restarted begins with the first page: all that is done already is only read.
type Walk struct {
	// after is the name of the last cluster that is done, and seen counts the clusters
	// up to it.
	after string
	seen  int
	// found is true when a cluster of this walk was stored in another version, and
	// again when there was a walk before this one.
	found, again bool
	// refused are the renewals that were refused, of all walks.
	refused Refusals
	// complete is true when a walk from the first cluster to the last has found none
	// that is stored in another version.
	complete bool
}

// Refusals are renewals of clusters that were refused.
type Refusals struct {
	Count int
	// First is the error of the first one, with the cluster's name.
	First string
}

// Complete reports whether no cluster is stored in another version any more.
func (w Walk) Complete() bool { return w.complete }

// Refused returns the renewals that were refused, of all walks.
func (w Walk) Refused() Refusals { return w.refused }

// Stored returns how many clusters are stored as they should be, of the given total,
// when a number of those on a page was rewritten.
func (w Walk) Stored(page Page, rewritten int) (stored, total int) {
	return w.seen + page.Objects - len(page.outdated) + rewritten, w.seen + page.Objects + page.Left
}

// Reveal decrypts what etcd holds under a key.
type Reveal func(ctx context.Context, key string, content []byte) ([]byte, error)

// Read reads the next page of a walk from etcd. Clusters are to be stored as a release
// stores them. Reveal is nil where nothing is encrypted.
func (w Walk) Read(ctx context.Context, access etcd.Access, to version.Release, reveal Reveal) (Page, error) {
	out, objects, needOf := Page{}, 0, needs(to.Stores, to.RenewsV1alpha1 && !w.again)
	stored, err := access.Stored(ctx, contract.ObjectPrefix(v1beta1.GroupName, "clusters"), w.after, func(name string, content []byte) error {
		objects++
		if reveal != nil {
			plain, err := reveal(ctx, contract.ObjectPrefix(v1beta1.GroupName, "clusters")+name, content)
			if err != nil {
				return err
			}
			content = plain
		}
		need, err := needOf(content)
		if need != needNothing {
			out.outdated = append(out.outdated, outdated{name, need, objects})
		}
		return err
	})
	out.Stored = stored
	return out, err
}

// Rewrite rewrites the clusters of a page that need it, until the time is up. One is
// always tried. It returns where to continue, and how many are done: a renewal that was
// refused is, too, for it would be refused again. What is done is not done again in
// this walk, even if it did not last.
func (w Walk) Rewrite(page Page, one func(name string) error, over func() bool) (next Walk, done int, err error) {
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
		w = Walk{again: true, refused: w.refused}
	default:
		w.complete = true
	}
	return w, done, nil
}

// and adds a renewal that was refused.
func (r Refusals) and(err error) Refusals {
	if r.Count == 0 {
		r.First = verdict.Bounded(err.Error())
	}
	r.Count++
	return r
}

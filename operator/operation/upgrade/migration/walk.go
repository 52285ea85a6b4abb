package migration

import (
	"context"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/version"
)

// Page is a page of stored clusters, and which of them are to be written again.
type Page struct {
	etcd.Stored
	outdated []outdated
}

// outdated is a cluster that is stored in another version of the API, and is to be
// written again: a later release may not read that version.
type outdated struct {
	name string
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
	// found is true when a cluster of this walk was stored in another version.
	found bool
	// complete is true when a walk from the first cluster to the last has found none
	// that is stored in another version.
	complete bool
}

// Complete reports whether no cluster is stored in another version any more.
func (w Walk) Complete() bool { return w.complete }

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
	out, objects := Page{}, 0
	stored, err := access.Stored(ctx, contract.ObjectPrefix(v1beta1.GroupName, "clusters"), w.after, func(name string, content []byte) error {
		objects++
		if reveal != nil {
			plain, err := reveal(ctx, contract.ObjectPrefix(v1beta1.GroupName, "clusters")+name, content)
			if err != nil {
				return err
			}
			content = plain
		}
		version, err := etcd.StoredVersion(content)
		if err == nil && version != v1beta1.GroupName+"/"+to.Stores {
			out.outdated = append(out.outdated, outdated{name, objects})
		}
		return err
	})
	out.Stored = stored
	return out, err
}

// Rewrite rewrites the clusters of a page that need it, until the time is up. One is
// always tried. It returns where to continue, and how many are done. What is done is not
// done again in this walk, even if it did not last.
func (w Walk) Rewrite(page Page, one func(name string) error, over func() bool) (next Walk, done int, err error) {
	before := w.seen
	for _, cluster := range page.outdated {
		if done > 0 && over() {
			return w, done, nil
		}
		if err := one(cluster.name); err != nil {
			return w, done, err
		}
		w.found = true
		w.after, w.seen = cluster.name, before+cluster.position
		done++
	}
	switch {
	case page.Left > 0:
		w.after, w.seen = page.Last, before+page.Objects
	case w.found:
		w = Walk{}
	default:
		w.complete = true
	}
	return w, done, nil
}

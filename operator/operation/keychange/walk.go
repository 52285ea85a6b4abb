package keychange

import (
	"context"
	"fmt"

	"github.com/clusterregistry/operator/operator/encryption"
	"github.com/clusterregistry/operator/operator/etcd"
)

// Walk is how far the stored clusters were gone through, by an operator that was not restarted
// meanwhile: one that was begins with the first. It has to be forgotten when other keys are
// recorded: what it has found is not so any more, even when these keys return.
type Walk struct {
	// digest identifies the keys in use in the walk.
	digest string
	// after is the name of the last cluster that is done, seen counts those up to it, and
	// others those of them that were under another key.
	after        string
	seen, others int
	complete     bool
	// revision is etcd's when the last page was read of a walk that is complete.
	revision int64
}

// Revision is a revision from which on nothing is under another key, whenever it is read: also
// not in the history, as long as the servers write under no other one. It is zero as long as no
// walk is complete.
func (w Walk) Revision() int64 { return w.revision }

// Storage reads and rewrites stored clusters.
type Storage struct {
	// Read reads the page of clusters after a name; see etcd.Access.Stored.
	Read func(ctx context.Context, after string, each func(name string, content []byte) error) (etcd.Stored, error)
	// Rewrite has a cluster stored again.
	Rewrite func(ctx context.Context, name string) error
	// Over reports whether the time for it is up.
	Over func() bool
}

// Continue goes further through the stored clusters, all of whose servers write with the first
// of the keys, and has those rewritten that are under another one. Once none was found from the
// first to the last, what is stored is known.
func (w Walk) Continue(ctx context.Context, keys encryption.Keys, storage Storage) (next Walk, stored map[string]int, progress string, err error) {
	if w.digest != keys.Digest() {
		w = Walk{digest: keys.Digest()}
	}
	for first := true; !w.complete && (first || !storage.Over()); first = false {
		var outdated []string
		page, err := storage.Read(ctx, w.after, func(name string, content []byte) error {
			if encryption.Under(content) != keys[0].ID() {
				outdated = append(outdated, name)
			}
			return nil
		})
		total := w.seen + page.Objects + page.Left
		progress = fmt.Sprintf("%d/%d", w.seen+page.Objects-len(outdated), total)
		if err != nil {
			return w, nil, fmt.Sprintf("%d", w.seen), err
		}
		for i, name := range outdated {
			if i > 0 && storage.Over() {
				return w, nil, progress, nil // the page is read again
			}
			if err := storage.Rewrite(ctx, name); err != nil {
				return w, nil, progress, err
			}
			w.others++
		}
		switch w.seen += page.Objects; {
		case page.Left > 0:
			w.after = page.Last
		case w.others > 0:
			w = Walk{digest: w.digest} // what was rewritten is looked at
		default:
			w.complete, w.revision = true, page.Revision
		}
	}
	if w.complete {
		return w, map[string]int{keys[0].ID(): w.seen}, fmt.Sprintf("%d/%d", w.seen, w.seen), nil
	}
	return w, nil, progress, nil
}

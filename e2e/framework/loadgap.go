package framework

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/watch"
)

// relisted is what an event is called that a list has told, after a watch was too slow: the
// cluster is there in that version, whatever has happened to it before.
const relisted watch.EventType = "LISTED"

// gap is what a watcher was not told one by one: all between the version that it had got to,
// when that was too old to watch from, and the version of the list that it has read instead.
type gap struct {
	from, to uint64
	// there are the versions of the clusters in the list.
	there map[string]uint64
}

// relist reads all clusters, as clients do that were too slow (status 410), and continues from
// there. What the list has is told, and what it no longer has is gone.
func (w *watcher) relist(ctx context.Context) error {
	from, err := strconv.ParseUint(w.version, 10, 64)
	if err != nil {
		return err
	}
	g := gap{from: from, there: map[string]uint64{}}
	version, err := w.source.List(ctx, func(object json.RawMessage) error {
		name, version, err := identify(object)
		if err != nil {
			return err
		}
		g.there[name], err = strconv.ParseUint(version, 10, 64)
		return err
	})
	if err != nil {
		return err
	}
	if g.to, err = strconv.ParseUint(version, 10, 64); err != nil {
		return fmt.Errorf("the list of clusters has no version: %w", err)
	}
	w.version = version
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gaps = append(w.gaps, g)
	for name, version := range g.there {
		if version > w.last[name].version {
			w.tell(name, write{relisted, version})
		}
	}
	for name, last := range w.last {
		if _, is := g.there[name]; !is && last.kind != watch.Deleted {
			w.tell(name, write{watch.Deleted, g.to})
		}
	}
	return nil
}

// skips reports whether a list stands for a write of a cluster: one that was followed by others
// before it, of which the last is in the list, or by the cluster's removal. What a list should
// have, it does not stand for.
func (g gap) skips(l *Life, w write) bool {
	if w.version <= g.from || w.version > g.to {
		return false
	}
	at, is := g.there[l.Name]
	if is {
		return at > w.version
	}
	return l.InDoubt || len(l.history) > 0 && l.history[len(l.history)-1].kind == watch.Deleted
}

// skipped reports whether one of some gaps stands for a write of a life. An answer to a deletion
// has no version: a gap stands for it that stands for the write before it.
func (l *Life) skipped(gaps []gap, i int) bool {
	if l.history[i].kind == watch.Deleted && i > 0 {
		i--
	}
	for _, g := range gaps {
		if g.skips(l, l.history[i]) {
			return true
		}
	}
	return false
}

package membership

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/clusterregistry/operator/operator/etcd"
)

// AddLearner implements Etcd.
func (w *world) AddLearner(_ context.Context, _ etcd.State, peerURL string) error {
	if slices.ContainsFunc(w.list, func(l etcd.Listed) bool { return l.Learner || l.PeerURLs[0] == peerURL }) {
		return errors.New("etcd refuses a second learner, or a URL that a member has")
	}
	w.lastID++
	w.list = append(w.list, etcd.Listed{ID: strconv.FormatInt(int64(w.lastID), 16), PeerURLs: []string{peerURL}, Learner: true})
	return w.note("add " + peerURL[8:20])
}

// Promote implements Etcd.
func (w *world) Promote(_ context.Context, _ etcd.State, id string) error {
	i := slices.IndexFunc(w.list, func(l etcd.Listed) bool { return l.ID == id })
	w.list[i].Learner = false
	return w.note("promote " + w.list[i].Name)
}

// MoveLeader implements Etcd.
func (w *world) MoveLeader(context.Context, etcd.State) error {
	w.list[0], w.list[1] = w.list[1], w.list[0]
	return w.note("move leader to " + w.list[0].Name)
}

// Remove implements Etcd.
func (w *world) Remove(_ context.Context, _ etcd.State, id string) error {
	i := slices.IndexFunc(w.list, func(l etcd.Listed) bool { return l.ID == id })
	did := "remove " + w.list[i].Name
	w.list = slices.Delete(w.list, i, i+1)
	return w.note(did)
}

// Agree implements Etcd.
func (w *world) Agree(_ context.Context, names ...string) error {
	for _, name := range names {
		if w.dead[name] {
			return errors.New(name + " does not answer")
		}
	}
	return w.differs
}

// Outlier implements Etcd.
func (w *world) Outlier(_ context.Context, member string) error {
	if member == "" && w.differs != nil {
		return w.differs
	}
	for _, l := range w.list {
		if (l.Name == w.corrupt) != (l.Name == member) {
			return errors.New("others have other data, too")
		}
	}
	return nil
}

// Compare implements Etcd.
func (w *world) Compare(ctx context.Context, member string) error {
	if w.healed {
		return &etcd.DataSame{Member: member, Revision: 7}
	}
	return w.Outlier(ctx, member)
}

// DisarmCorrupt implements Etcd.
func (w *world) DisarmCorrupt(context.Context, etcd.State) error {
	w.alarms = nil
	return w.note("disarm")
}

func (w *world) note(what string) error {
	w.did = append(w.did, what)
	return w.refuse
}

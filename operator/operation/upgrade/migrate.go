package upgrade

import (
	"context"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/verdict"
)

// migrateTime is for how long clusters are rewritten before the rest of the
// registry is reconciled again. One request may take longer.
const migrateTime = 5 * time.Second

// migrate is complete when no cluster is stored in another version of the API than
// the one that the new release stores.
func (h Handler) migrate(ctx context.Context) verdict.Verdict {
	// What a server of before writes after the walk would stay in the version of before.
	switch {
	case !h.Servers.Asked || h.Verdicts[operatorv1alpha1.ConditionServerReady].Err != nil:
		return h.Waiting("it is not known which servers run, and one of %s may still write: see ServerReady", h.From.Version)
	case h.Servers.Before != "":
		return h.Waiting("%s of %s may still write; if its node is gone for good, delete the pod with --force", h.Servers.Before, h.From.Version)
	}
	to, until := h.To, time.Now().Add(migrateTime)
	at := h.Notes.of(h.Registry.UID).walk
	page, err := at.Read(ctx, h.EtcdAccess, to, h.Reveal)
	if err != nil {
		return h.Waiting("the version in which clusters are stored is not known: %s", err)
	}
	client, err := h.Actions.Client(ctx)
	if err != nil {
		return verdict.Failed(err)
	}
	next, rewritten, err := at.Rewrite(page, func(name string) error { return client.Rewrite(ctx, to.Stores, name) }, func() bool { return time.Now().After(until) })
	if next.Complete() {
		return verdict.Verdict{}
	}
	h.Notes.change(h.Registry.UID, func(n *note) { n.walk = next })
	stored, total := at.Stored(page, rewritten)
	h.progress(int32(stored), int32(total))
	if err != nil {
		return h.Waiting("%d of %d clusters are stored in the version of %s; %s", stored, total, to.Version, err)
	}
	return h.Waiting("%d of %d clusters are stored in the version of %s", stored, total, to.Version).In(verdict.AtOnce)
}

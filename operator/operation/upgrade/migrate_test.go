package upgrade

import (
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/operation/upgrade/migration"
)

// TestRefusedRenewals are told once, in an event and in the history, which keeps what
// it says.
func TestRefusedRenewals(t *testing.T) {
	const says = "clients of v1alpha1 see 3 of the clusters as earlier releases showed them, each until its endpoints are next changed through v1beta1: an update without a change was refused, first: rewrite cluster east: no owner"
	for reason, test := range map[string]struct {
		refused        migration.Refusals
		known, history string
		events         int
	}{
		"none":                           {migration.Refusals{}, "", "", 0},
		"some":                           {migration.Refusals{Count: 3, First: "rewrite cluster east: no owner"}, "", says, 1},
		"some, and there is no snapshot": {migration.Refusals{Count: 3, First: "rewrite cluster east: no owner"}, "etcd is external", "etcd is external; " + says, 1},
		"none, and there is no snapshot": {migration.Refusals{}, "etcd is external", "etcd is external", 0},
	} {
		h, did := upgrading(t, "v0.2.0", "v0.3.0", "StorageMigration"), &actions{}
		h.Actions, h.Registry.Status.History[0].Message = did, test.known
		h.tellRefused(test.refused)
		history.Complete(h.Registry, operatorv1alpha1.TransitionCompleted, "", now)
		if got := history.Last(h.Registry).Message; got != test.history || len(did.calls) != test.events {
			t.Errorf("%s: %d events, and the history says %q", reason, len(did.calls), got)
		}
		if test.events > 0 && did.calls[0] != "Warning MigrationRefused "+says {
			t.Errorf("%s: the event %q", reason, did.calls[0])
		}
	}
}

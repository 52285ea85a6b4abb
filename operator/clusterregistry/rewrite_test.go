package clusterregistry

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

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
		s := upgrading(t, "v0.2.0", "v0.3.0", "StorageMigration", "")
		s.registry.Status.History[0].Message = test.known
		recorder := events.NewFakeRecorder(5)
		r := reading(t)
		r.Events = recorder
		r.tellRefused(s, test.refused)
		history.Complete(s.registry, operatorv1alpha1.TransitionCompleted, "", s.now)
		if got := history.Last(s.registry).Message; got != test.history || len(recorder.Events) != test.events {
			t.Errorf("%s: %d events, and the history says %q", reason, len(recorder.Events), got)
		}
		if test.events > 0 {
			if got := <-recorder.Events; !strings.Contains(got, "Warning MigrationRefused "+says) {
				t.Errorf("%s: the event %q", reason, got)
			}
		}
	}
}

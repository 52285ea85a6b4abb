package server

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/turn"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestTurn is about servers whose template changes together with that of etcd's members:
// they wait until all members are replaced, unless nobody would gain by that. When members
// are being replaced, their stage says.
func TestTurn(t *testing.T) {
	for _, test := range []struct {
		reason    string
		replacing bool
		change    func(*Stage, *appsv1.Deployment)
		waits     bool
	}{
		{"members are being replaced", true, func(*Stage, *appsv1.Deployment) {}, true},
		{"members are not", false, func(*Stage, *appsv1.Deployment) {}, false},
		{"no server is ready: the change may mend them", true, func(_ *Stage, d *appsv1.Deployment) { d.Status.ReadyReplicas = 0 }, false},
		{"servers are being replaced: members wait for them", true, func(_ *Stage, d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, false},
		{"there are no servers yet", true, func(_ *Stage, d *appsv1.Deployment) { d.Name = "another" }, false},
		{"it is read-only, and nothing is applied anyway", true, func(s *Stage, _ *appsv1.Deployment) { s.Freeze("spec.paused is false") }, false},
	} {
		deployment, _ := operandtest.Servers(2)
		s := newStage(t, operandtest.InstalledAggregated)
		s.MembersReplacing = test.replacing
		test.change(s, deployment)
		s.HostCluster = operandtest.Host(t, deployment)
		operandtest.RenderServers(s.Objects)
		objects, v := s.turn(t.Context())
		if waits := turn.DeploymentAt(objects) < 0; waits != test.waits || (!v.Complete()) != test.waits || !v.Complete() && (v.State != verdict.Degraded || v.Err != nil) {
			t.Errorf("%s: waits %t, %+v", test.reason, waits, v)
		}
	}
}

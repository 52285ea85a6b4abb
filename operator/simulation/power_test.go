package simulation

import (
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestPowerCut has all nodes lose their power at once while something is under way, at any step of
// it and in the middle of what the operator does: the members and servers of the registry and the
// operator go down, and come back one by one. What was begun becomes complete, and the registry
// comes to rest.
func TestPowerCut(t *testing.T) {
	lives(t, func(w *world) {
		under := undertakings[w.random.IntN(len(undertakings))]
		c := cell{undertaking: under, step: 1 + w.random.IntN(under.steps)}
		c.entered(w)
		w.losesPower()
		c.completes(w)
		if w.registry() != nil && !c.bare { // whose backups go on
			w.rests(20 * time.Minute)
		}
	})
}

// TestServersAskForEtcd has all servers start again while no member can be reached: they end, and
// none answers, until etcd does. No one is led to them meanwhile.
func TestServersAskForEtcd(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(1)
		w.cuts(0, true)
		for _, pod := range w.host.list(podKind, key.namespace) {
			if component(pod) == "server" {
				w.ends(pod)
			}
		}
		w.until("it is said why no server is ready", 3*time.Minute, func() bool {
			return strings.Contains(w.condition(operatorv1alpha1.ConditionServerReady).Message, "no etcd answers at")
		})
		w.pass(away)
		if w.backend() != nil || len(w.host.list(apiServices, "")) > 0 {
			w.fails("a server answers without etcd, or the registry is registered")
		}
		w.cuts(0, false)
		w.until("servers answer", time.Minute, func() bool { return w.backend() != nil })
		w.rests(10 * time.Minute)
	})
}

// losesPower has all that runs end at once. The operator is at a write, unless it makes none.
func (w *world) losesPower() {
	w.faults.kill = 50
	for end := time.Now().Add(w.within(time.Minute)); w.operator != nil && time.Now().Before(end); {
		w.step()
	}
	w.faults.kill = 0
	w.note("the power is cut")
	for _, uid := range sorted(w.pods) {
		w.pods[uid].stop()
		delete(w.pods, uid) // kubelet starts the pods again, with other addresses
	}
	w.etcd.leader, w.operator, w.starts = 0, nil, time.Now()
	time.Sleep(w.within(20 * time.Minute))
	w.outages++
	w.starts = time.Now().Add(w.within(2 * time.Minute))
	w.note("the power is back")
}

// within returns a duration by chance.
func (w *world) within(most time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(most)))
}

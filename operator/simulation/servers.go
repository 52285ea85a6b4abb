package simulation

import (
	"encoding/pem"
	"time"
)

// patience is how long a server asks for etcd before it ends.
const patience = 20 * time.Second

// runServer runs a server once there is what it mounts. It answers no one before it has reached
// etcd, and from then on whatever etcd does.
func (w *world) runServer(pod *stored, p *process) {
	serving := w.secret("fleet-serving", "tls.crt")
	if serving == nil || w.secret("fleet-etcd-client", "tls.crt") == nil {
		return
	}
	if p.chain == nil || w.chance(20) {
		p.chain, p.key = serving, w.secret("fleet-serving", "tls.key")
	}
	if p.runs || p.ended != 0 && w.chance(70) { // kubelet starts it again after a while
		return
	}
	if !p.asks {
		p.asks, p.started, p.ended = true, time.Now(), 0
	}
	switch {
	case w.reachesEtcd(pod):
		p.runs, p.asks = true, false
	case time.Since(p.started) > patience:
		p.crash("no etcd answers at https://fleet-etcd-0.fleet-etcd.team.svc:2379")
		p.asks = false
	}
}

// reachesEtcd reports whether a member answers a server that starts, which needs no majority.
func (w *world) reachesEtcd(pod *stored) bool {
	if w.nameless {
		return false
	}
	trusts := w.verified.pool(w.mounts(pod, "etcd-trust", "etcd-ca.crt"))
	own, _ := pem.Decode(w.secret("fleet-etcd-client", "tls.crt"))
	for _, uid := range sorted(w.pods) {
		p := w.pods[uid]
		if p.disk != nil && p.serves() && w.trust(p, trusts, p.name+".fleet-etcd.team.svc", own.Bytes) == nil {
			return true
		}
	}
	return false
}

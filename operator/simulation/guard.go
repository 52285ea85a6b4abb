package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterregistry/operator/internal/contract"
)

// guard decides as the guard of a member does.
func (w *world) guard(p *process) (code int64, says string) {
	passed, mounted := w.record(), p.mounted
	state, joining := mounted[contract.RecordState], mounted[contract.RecordJoining]
	may := state == contract.StateNew && passed[contract.RecordState] == contract.StateNew
	joins := joining == p.name && passed[contract.RecordJoining] == p.name
	recorded := func(key string) uint64 {
		number, _ := strconv.ParseUint(mounted[key], 16, 64) // zero where none is recorded
		return number
	}
	cluster, own := recorded(contract.RecordCluster), recorded(contract.RecordMember+p.name)
	switch {
	case w.restoresBackup(p, passed, recorded):
		return 0, "with the data of a backup, as the only member of a new etcd"
	case w.recovers(p, passed, recorded):
		return 0, "with the data of before, as the only member of a new etcd"
	case p.disk.member != 0 && (cluster != 0 && p.disk.cluster != cluster || own != 0 && p.disk.member != own):
		return contract.GuardForeign, "it has the data of another member"
	case p.disk.member != 0:
		return 0, "with its data"
	case may:
		return 0, w.form(p, strings.Split(mounted[contract.RecordMembers], contract.RecordSeparator))
	case !joins:
		return contract.GuardRefused, "it has no data, and is recorded"
	case own == 0:
		return contract.GuardEmpty, "its ID is not recorded yet"
	}
	m, is := w.etcd.find(own)
	switch {
	case w.etcd.leader == 0:
		return contract.GuardEmpty, "no other member answers"
	case !is || !m.learner || m.named:
		return contract.GuardRefused, "it has no data, and the members that run do not list it as one that never started"
	}
	p.disk.cluster, p.disk.member, p.disk.index = w.etcd.id, own, 0
	return 0, "as a learner"
}

// restoresBackup makes a new etcd of a backup, as the init containers of a member do, if that is
// recorded.
func (w *world) restoresBackup(p *process, passed map[string]string, recorded func(string) uint64) bool {
	asked := passed[contract.RecordRestore]
	if asked == "" || asked != p.mounted[contract.RecordRestore] || p.disk.member != 0 || p.fetches == "" || w.storeAway {
		return false
	}
	w.continues(p, recorded, w.backups[p.fetches].Revision)
	return true
}

// recovers makes a new etcd of the data of a member, if that is recorded.
func (w *world) recovers(p *process, passed map[string]string, recorded func(string) uint64) bool {
	var asked contract.Recovery
	if text := passed[contract.RecordRecovery]; text == "" || text != p.mounted[contract.RecordRecovery] || json.Unmarshal([]byte(text), &asked) != nil {
		return false
	}
	if asked.Member != p.name || fmt.Sprintf("%x", p.disk.cluster) != asked.ClusterID || fmt.Sprintf("%x", p.disk.member) != asked.MemberID {
		return false
	}
	w.continues(p, recorded, p.revision())
	return true
}

// continues makes a member the only one of a new etcd, with data that ended with a revision.
func (w *world) continues(p *process, recorded func(string) uint64, revision int64) {
	own := recorded(contract.RecordMember + p.name)
	w.etcd = &cluster{id: recorded(contract.RecordCluster), lastID: w.etcd.lastID, marks: w.etcd.marked(revision),
		log: []entry{{revision + contract.RevisionBump, []member{{id: own, name: p.name, url: "https://" + p.name + ".fleet-etcd.team.svc:2380", named: true}}}}}
	*p.disk = disk{cluster: w.etcd.id, member: own, index: 1}
}

// form makes a member the one of a new etcd.
func (w *world) form(p *process, names []string) string {
	if w.etcd.id == 0 {
		var members []member
		for i, name := range names {
			members = append(members, member{id: 0xa0 + uint64(i), name: name, url: "https://" + name + ".fleet-etcd.team.svc:2380", named: true}) //nolint:gosec // G115: a few
		}
		w.etcd.forms(members)
	}
	i := slices.IndexFunc(w.etcd.last().members, func(m member) bool { return m.name == p.name })
	if i < 0 {
		w.fails("%s forms an etcd beside the one of%s", p.name, describe(w.etcd.last().members))
	}
	p.disk.cluster, p.disk.member, p.disk.index = w.etcd.id, w.etcd.last().members[i].id, 1
	return "as a member of a new etcd"
}

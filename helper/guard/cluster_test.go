package guard

import (
	"errors"
	"strings"
	"testing"

	"github.com/clusterregistry/operator/internal/contract"
)

// peer returns the URL of a member for members.
func peer(name string) string { return "https://" + name + ".fleet-etcd.team.svc:2380" }

// TestJoin is about what the members that run know of one that joins empty: only as a
// learner that was never started it has never had data that others count on.
func TestJoin(t *testing.T) {
	voter := func(id uint64, name string) listed { return listed{id: id, name: name, peers: []string{peer(name)}} }
	first, second := voter(0xa0, "m0"), voter(0xa1, "m1")
	joining := listed{id: 0xa2, peers: []string{peer("m2")}, learner: true}
	changed := func(change func(*listed)) listed {
		m := joining
		change(&m)
		return m
	}
	recorded := record{identity: identity{0xc1, 0xa2}, state: contract.StateExisting, joins: true}
	for _, test := range []struct {
		reason string
		list   listing
		want   string // what it begins with, or what the error says
		fails  bool
	}{
		{"of one member", listing{0xc1, []listed{first, joining}}, "m0=" + peer("m0") + ",m2=" + peer("m2"), false},
		{"of two", listing{0xc1, []listed{joining, first, second}}, "m2=" + peer("m2") + ",m0=" + peer("m0") + ",m1=" + peer("m1"), false},
		{"one with two URLs", listing{0xc1, []listed{{id: 0xa0, name: "m0", peers: []string{peer("m0"), "https://other:1"}}, joining}}, "m0=" + peer("m0") + ",m0=https://other:1,m2=" + peer("m2"), false},

		{"it was promoted, and the record is late", listing{0xc1, []listed{first, changed(func(m *listed) { m.learner, m.name = false, "m2" })}}, "member ID a2 has a vote", true},
		{"it was promoted before it said its name", listing{0xc1, []listed{first, changed(func(m *listed) { m.learner = false })}}, "member ID a2 has a vote", true},
		{"it has had data as a learner", listing{0xc1, []listed{first, changed(func(m *listed) { m.name = "m2" })}}, "member ID a2 has been started before, as m2", true},
		{"it was removed", listing{0xc1, []listed{first, second}}, "do not list it, or not under this ID", true},
		{"it was added under another ID", listing{0xc1, []listed{first, changed(func(m *listed) { m.id = 0xa3 })}}, "it is recorded as member ID a2, and the members that run list it as a3: record a3 in member-id.m2, or wait", true},
		{"it was added under another ID, and with a vote", listing{0xc1, []listed{first, changed(func(m *listed) { m.id, m.learner = 0xa3, false })}}, "list it as member ID a3, which has a vote in etcd: it must be removed", true},
		{"it was added twice", listing{0xc1, []listed{first, joining, changed(func(m *listed) { m.id = 0xa3 })}}, "member ID a3 at " + peer("m2") + " was added to etcd, too", true},
		{"it was removed, and another one was added", listing{0xc1, []listed{first, {id: 0xa4, peers: []string{peer("m4")}, learner: true}}}, "member ID a4 at " + peer("m4") + " was added to etcd, too", true},
		{"another cluster, and another ID", listing{0xc2, []listed{first, changed(func(m *listed) { m.id = 0xa3 })}}, "are of cluster c2", true},
		{"at the URL of another", listing{0xc1, []listed{first, changed(func(m *listed) { m.peers = []string{peer("m3")} })}}, "was added to etcd at " + peer("m3") + " and not at " + peer("m2"), true},
		{"one more that was never started", listing{0xc1, []listed{first, joining, {id: 0xa4, peers: []string{peer("m4")}}}}, "member ID a4 at " + peer("m4"), true},
		{"another cluster", listing{0xc2, []listed{first, joining}}, "are of cluster c2", true},
		{"no members", listing{cluster: 0xc1}, "do not list it", true},
	} {
		got, err := test.list.join("m2", peer("m2"), recorded)
		if (err != nil) != test.fails {
			t.Errorf("%s: %q, %v", test.reason, got, err)
			continue
		}
		if err != nil && !strings.Contains(err.Error(), test.want) || err == nil && got != test.want {
			t.Errorf("%s: %q, %v; want %q", test.reason, got, err, test.want)
		}
		if undecided := errors.As(err, new(*Undecided)); undecided != strings.HasSuffix(test.reason, "under another ID") {
			t.Errorf("%s: undecided: %t: %v", test.reason, undecided, err)
		}
	}
}

// TestBegin is about members that start empty before any other member is asked.
func TestBegin(t *testing.T) {
	cluster := Cluster{PeerURL: "https://{member}.fleet-etcd.team.svc:2380", Patience: 1}
	for _, test := range []struct {
		reason string
		record record
		want   string // what it begins with, or what the error says
		fails  bool
	}{
		{"one of three", record{state: contract.StateNew, members: []string{"m0", "m1", "m2"}}, "m0=" + peer("m0") + ",m1=" + peer("m1") + ",m2=" + peer("m2"), false},
		{"the only one", record{state: contract.StateNew, members: []string{"m0"}}, "m0=" + peer("m0"), false},
		{"not among them", record{state: contract.StateNew, members: []string{"m1"}}, `the key members of the record does not have this member (found: "m1")`, true},
		{"none is recorded", record{state: contract.StateNew}, `(found: "")`, true},
		{"it joins under no ID", record{identity: identity{cluster: 0xc1}, state: contract.StateExisting, joins: true, members: []string{"m0", "m1"}}, "not under which ID it was added to etcd: record that in member-id.m0", true},
		{"it joins no one", record{identity: identity{0xc1, 0xa0}, state: contract.StateExisting, joins: true, members: []string{"m0"}}, "can't be asked whether it may join: no other member is recorded", true},
		{"those that it joins do not answer", record{identity: identity{0xc1, 0xa0}, state: contract.StateExisting, joins: true, members: []string{"m0", "m1"}}, "can't be asked whether it may join: member m1: ", true},
	} {
		got, err := Member{Name: "m0", IdentityDir: "/identity", Cluster: cluster}.begin(t.Context(), test.record)
		if (err != nil) != test.fails {
			t.Errorf("%s: %q, %v", test.reason, got, err)
			continue
		}
		if err != nil && !strings.Contains(err.Error(), test.want) || err == nil && got != test.want {
			t.Errorf("%s: %q, %v; want %q", test.reason, got, err, test.want)
		}
		if err != nil && !errors.As(err, new(*Undecided)) {
			t.Errorf("%s: it counts as lost: %v", test.reason, err)
		}
		if err != nil && !strings.Contains(err.Error(), "etcd member m0 has no data") {
			t.Errorf("%s: it does not say of which member: %v", test.reason, err)
		}
	}
}

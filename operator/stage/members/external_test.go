package members

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// newExternal returns the stage of an external etcd with three members, with the status of the
// registry in YAML.
func newExternal(t *testing.T, status string, changes ...func(*etcd.State)) *Stage {
	t.Helper()
	ca, pair := operandtest.KeyPair(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "etcd"}, Data: pair}
	s := newStage(t, "{spec: {etcd: {external: {endpoints: ['https://a:2379', 'https://b:2379', 'https://c:2379'], tlsSecretRef: {name: etcd}}}}, status: "+status+"}", secret, hostCluster())
	s.Ownership = ownership()
	s.Authorities.Etcd.Current = ca
	operandtest.RenderServers(s.Objects)
	s.Ask = func(_ context.Context, access etcd.Access) etcd.State {
		state := etcd.State{}
		for i, name := range []string{"a:2379", "b:2379", "c:2379"} {
			id := "a" + string(rune('0'+i))
			if access.Endpoints[name] != "https://"+name {
				t.Errorf("it asks %v", access.Endpoints)
			}
			state.Members = append(state.Members, etcd.Member{Name: name, ID: id, ClusterID: "c", Leader: "a0", Version: "3.5.13", DBSize: 1 << 20, Quota: 100 << 20})
			state.List = append(state.List, etcd.Listed{ID: id, Name: "m" + string(rune('0'+i))})
		}
		for _, change := range changes {
			change(&state)
		}
		return state
	}
	return s
}

// TestExternal is about what is said of an etcd that others run, of which nothing is changed.
func TestExternal(t *testing.T) {
	member := func(i int, change func(*etcd.Member)) func(*etcd.State) {
		return func(s *etcd.State) { change(&s.Members[i]) }
	}
	down := func(m *etcd.Member) {
		*m = etcd.Member{Name: m.Name, Err: errors.New("member " + m.Name + " does not answer")}
	}
	for _, test := range []struct {
		what    string
		changes []func(*etcd.State)
		state   verdict.State
		reason  string
		says    []string
	}{
		{"all is well", nil, verdict.Done, "", nil},
		{"a member is down", []func(*etcd.State){member(1, down)}, verdict.Degraded, "ExternalUnreachable", []string{"b:2379 does not answer"}},
		{"all are down", []func(*etcd.State){member(0, down), member(1, down), member(2, down)}, verdict.ReadOnly, "ExternalUnreachable", []string{"a:2379", "b:2379", "c:2379"}},
		{"it is full", []func(*etcd.State){func(s *etcd.State) { s.Alarms = []etcd.Alarm{{MemberID: "a1", Type: etcd.AlarmNoSpace}} }}, verdict.Degraded, "NoSpace", []string{"raised by member m1", "etcdctl alarm disarm"}},
		{"its data differs", []func(*etcd.State){func(s *etcd.State) { s.Alarms = []etcd.Alarm{{MemberID: "a1", Type: etcd.AlarmCorrupt}} }}, verdict.Degraded, "Corrupt", []string{"raised by member m1"}},
		{"it is nearly full", []func(*etcd.State){member(1, func(m *etcd.Member) { m.DBSize = 81 << 20 })}, verdict.Done, "StorageNearlyFull", []string{"the file of member b:2379 has more than 80% of its quota of 100 MiB"}},
		{"it has its share", []func(*etcd.State){member(1, func(m *etcd.Member) { m.DBSize = 80 << 20 })}, verdict.Done, "", nil},
		{"its quota is not known", []func(*etcd.State){member(1, func(m *etcd.Member) { m.Quota, m.DBSize = 0, 81<<20 })}, verdict.Done, "", nil},
		{"it is old", []func(*etcd.State){member(0, func(m *etcd.Member) { m.Version = "3.5.9" })}, verdict.Done, "EtcdVersionUnsupported", []string{"member a:2379 runs etcd v3.5.9, and servers need v3.5.13 or newer"}},
		{"it is very old, and nearly full", []func(*etcd.State){member(0, func(m *etcd.Member) { m.Version, m.DBSize = "3.4.40", 90<<20 })}, verdict.Done, "StorageNearlyFull", []string{"runs etcd v3.4.40", "more than 80%"}},
		{"it is another one", []func(*etcd.State){member(0, func(m *etcd.Member) { m.ClusterID = "d" })}, verdict.ReadOnly, "IdentityMismatch", []string{"cluster ID d, but c is recorded"}},
	} {
		s := newExternal(t, "{etcd: {clusterID: c}}", test.changes...)
		found := s.Run(t.Context())
		if found.Verdict.State != test.state || found.Reason != test.reason {
			t.Errorf("%s: %+v", test.what, found.Verdict)
		}
		for _, word := range test.says {
			if !strings.Contains(found.Message, word) {
				t.Errorf("%s: it says %q, want %q", test.what, found.Message, word)
			}
		}
		if members := s.Registry.Status.Etcd.Members; len(members) != 3 || members[2].Name != "c:2379" || found.Verdict.State == verdict.Done && members[2].Version != "v3.5.13" {
			t.Errorf("%s: the status has %+v", test.what, members)
		}
	}
}

// TestExternalWentBack notices an external etcd that is at an older revision than it was known to
// be at, by what the status has and what the operator remembers: nothing is done with it then. A
// member that lags, or does not say how far the members have got, is no such etcd.
func TestExternalWentBack(t *testing.T) {
	says := func(revision int64, members ...int) func(*etcd.State) {
		return func(s *etcd.State) {
			for _, i := range members {
				s.Members[i].Revision, s.Members[i].Position.Revision = revision, revision
			}
		}
	}
	lags := func(s *etcd.State) {
		for i := range s.Members {
			s.Members[i].Revision = 100
		}
	}
	compacted := func(s *etcd.State) {
		for i := range s.Members {
			s.Members[i].Position.Upkeep = 10
		}
	}
	down := func(s *etcd.State) {
		s.Members[0] = etcd.Member{Name: "a:2379", Err: errors.New("member a:2379 does not answer")}
	}
	const known, old = "{etcd: {clusterID: c, newest: {revision: 140, time: '2030-01-02T03:00:00Z'}}}", "{etcd: {clusterID: c, newest: {revision: 140, time: '2020-01-02T03:00:00Z'}}}"
	const back = "{etcd: {clusterID: c, newest: {revision: 140, time: '2030-01-02T03:00:00Z'}}, recovery: {id: c-1, lostTime: '2030-01-02T03:00:00Z', lastRevision: 140, members: [{name: 'a:2379', revision: 100}]}}"
	for _, test := range []struct {
		what       string
		status     string
		remembered int64
		changes    []func(*etcd.State)
		newest     int64
		says       string // empty where it did not go back
	}{
		{"it is not known yet", "{}", 0, []func(*etcd.State){says(100, 0, 1, 2)}, 0, ""},
		{"it is not known yet, and another one was", "{}", 900, []func(*etcd.State){says(100, 0, 1, 2)}, 0, ""},
		{"it is known, and how far it is was not", "{etcd: {clusterID: c}}", 0, []func(*etcd.State){says(100, 0, 1, 2)}, 100, ""},
		{"it is where it was", known, 140, []func(*etcd.State){says(140, 0, 1, 2)}, 140, ""},
		{"it got further", old, 140, []func(*etcd.State){says(150, 0, 1, 2)}, 150, ""},
		{"its servers have compacted it, and no one has written", old, 140, []func(*etcd.State){says(150, 0, 1, 2), compacted}, 140, ""},
		{"one member says so", known, 140, []func(*etcd.State){says(140, 1), down}, 140, ""},
		{"members lag, and may not be read", known, 140, []func(*etcd.State){lags}, 140, ""},
		{"it was set back", known, 0, []func(*etcd.State){says(100, 0, 1, 2)}, 140, "etcd went back from revision 140 to 100"},
		{"by what the operator remembers alone", known, 150, []func(*etcd.State){says(145, 0, 1, 2)}, 150, "from revision 150 to 145"},
		{"a member may have what is missing", known, 0, []func(*etcd.State){says(100, 1, 2), down}, 140, "may have what is missing: member a:2379 does not answer"},
		{"it has got further since", back, 0, []func(*etcd.State){says(900, 0, 1, 2)}, 140, "etcd went back from revision 140 to 100, as after it was restored from an older snapshot: at least 40 known revisions"},
	} {
		s := newExternal(t, test.status, test.changes...)
		s.Remembered = test.remembered
		wrote := false
		s.Ownership.Own = func(_ etcd.Access, _ context.Context, owner etcd.Owner, _ etcd.Owned) (etcd.Owned, error) {
			wrote = true
			return etcd.Owned{Owner: owner, Revision: 1}, nil
		}
		found := s.Run(t.Context())
		isBack := found.Reason == "WentBack"
		if isBack != (test.says != "") || isBack && (found.Verdict.State != verdict.ReadOnly || wrote || !strings.Contains(found.Message, test.says)) || !isBack && found.Verdict.State == verdict.ReadOnly {
			t.Errorf("%s: %+v, written: %t", test.what, found.Verdict, wrote)
		}
		newest, lost := s.Registry.Status.Etcd.Newest, s.Registry.Status.Recovery
		if (newest == nil) != (test.newest == 0) || newest != nil && newest.Revision != test.newest {
			t.Errorf("%s: recorded is %+v", test.what, newest)
		}
		if (lost != nil) != isBack || isBack && (len(lost.Members) != 3 || lost.LastRevision != test.newest || lost.Members[1].Revision == 0 || lost.Members[1].RevisionsLost != lost.LastRevision-lost.Members[1].Revision || strings.Contains(test.status, "c-1") != (lost.ID == "c-1")) {
			t.Errorf("%s: the status has %+v", test.what, lost)
		}
	}
}

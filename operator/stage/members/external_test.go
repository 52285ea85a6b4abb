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
		ca, pair := operandtest.KeyPair(t)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "etcd"}, Data: pair}
		s := newStage(t, "{spec: {etcd: {external: {endpoints: ['https://a:2379', 'https://b:2379', 'https://c:2379'], tlsSecretRef: {name: etcd}}}}, status: {etcd: {clusterID: c}}}", secret, hostCluster())
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
			for _, change := range test.changes {
				change(&state)
			}
			return state
		}
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

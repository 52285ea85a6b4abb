package rotation

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/handshake"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/trust"
	"github.com/clusterregistry/operator/operator/trust/trusttest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// rotatingEtcd returns the scope of a complete registry with one member, whose CA of etcd has
// the given generations in use and is to have the second, of the newest release.
func rotatingEtcd(t *testing.T, u generation.InUse, first, second trusttest.CA) *known {
	t.Helper()
	s := rotating(t, "Aggregated", "{etcd: 2}", one, generation.InUse{})
	s.Registry.Spec.Etcd.Replicas = 1
	s.Identity.Record = &etcd.Record{InitialClusterState: "existing", Replicas: 1, CA: trust.KeyFingerprint(first.PEM), Generations: u, Identity: etcd.Identity{ClusterID: "c", Members: map[string]string{"fleet-etcd-0": "a"}}}
	s.Authorities.Etcd = trust.Authority{Source: "Secret fleet-etcd-ca", InUse: u, Current: first.PEM, Also: second.PEM}
	if u.Previous() {
		s.Authorities.Etcd.Source, s.Authorities.Etcd.Current, s.Authorities.Etcd.Also = "Secret fleet-etcd-ca-2", second.PEM, first.PEM
	}
	return s
}

// TestEtcdCABegins has etcd's CA be rotated first.
func TestEtcdCABegins(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, second := trusttest.NamedCA(t, "fleet-etcd-ca", later), trusttest.NamedCA(t, "fleet-etcd-ca-2", later)
	s := rotatingEtcd(t, one, first, second)
	s.in(t)
	s.run(t)
	if o := s.Registry.Status.Operation; o == nil || o.From != "etcd 1" || o.To != "etcd 2" {
		t.Errorf("%+v", o)
	}
}

// TestEtcdCA is about what counts as trusted, shown and withdrawn of etcd's CA: what members
// say at both ports, from pods of the latest template.
func TestEtcdCA(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, second := trusttest.NamedCA(t, "fleet-etcd-ca", later), trusttest.NamedCA(t, "fleet-etcd-ca-2", later)
	shows := func(leaf []byte, cas ...trusttest.CA) handshake.Shown {
		shown := handshake.Shown{Chain: leaf}
		for _, ca := range cas {
			shown.Accepts = append(shown.Accepts, trust.Parse(ca.PEM)[0].RawSubject)
		}
		return shown
	}
	const at = "fleet-etcd-0, port 2380, "
	old, now := shows(first.Leaf(), first, second), shows(second.Leaf(), first, second)
	for _, test := range []struct {
		reason                    string
		client, peer              handshake.Shown
		err                       error
		leaf                      []byte
		change                    func(*known)
		trusted, shown, withdrawn string
	}{
		{"both are trusted, and shown is the new one", now, now, nil, second.Leaf(), nil, "", "", "no longer trusts the previous CA"},
		{"to other members it shows the previous one", now, old, nil, second.Leaf(), nil, "", "waiting until pod " + at + "shows a certificate of the new CA", "no longer trusts"},
		{"of other members it trusts the previous one alone", now, shows(second.Leaf(), first), nil, second.Leaf(), nil, "waiting until pod " + at + "trusts both CAs", "", "no longer trusts"},
		{"the client certificate is of the previous one", now, now, nil, first.Leaf(), nil, "", "waiting for cert-manager to issue Certificate fleet-etcd-server by the CA in Secret fleet-etcd-ca-2", "no longer trusts"},
		{"it trusts the new one alone", shows(second.Leaf(), second), shows(second.Leaf(), second), nil, second.Leaf(), nil, "trusts both CAs", "", ""},
		{"of other members it trusts both", shows(second.Leaf(), second), now, nil, second.Leaf(), nil, "trusts both CAs", "", at + "no longer trusts the previous CA"},
		{"it can't be asked", now, now, errors.New("no route"), second.Leaf(), nil, "no route", "no route", "no route"},
		{"members are being replaced", now, now, nil, second.Leaf(), func(s *known) { s.Members.Rolling = "etcd: 0 of 1 members updated" }, "etcd: 0 of 1", "", "etcd: 0 of 1"},
		{"servers are not ready", now, now, nil, second.Leaf(), func(s *known) {
			s.Verdicts[operatorv1alpha1.ConditionServerReady] = verdict.Waiting("ReplicasNotReady", "1 of 2").DegradedIf(true)
		}, "waiting until ServerReady is True: 1 of 2", "", "waiting until ServerReady is True: 1 of 2"},
		{"a member has no pod", now, now, nil, second.Leaf(), func(s *known) { s.Identity.Record.Replicas = 3 }, "all etcd members can be asked: 1 of 3 have a pod", "1 of 3", "1 of 3"},
	} {
		s := rotatingEtcd(t, both, first, second)
		pod := readyServer("fleet-etcd-0")
		pod.Labels[operatorv1alpha1.LabelComponent] = "etcd"
		s.in(t, pod, operandtest.Secret("fleet-etcd-server", test.leaf), operandtest.Secret("fleet-etcd-peer", test.leaf), operandtest.Secret("fleet-etcd-client", test.leaf))
		record := s.Identity.Record
		s.Identity = identity.New(s.Objects)
		s.Identity.Record = record
		s.access.Handshake = func(_ context.Context, server handshake.Server) (handshake.Shown, error) {
			if _, port, _ := net.SplitHostPort(server.Address); port == "2380" {
				return test.peer, test.err
			}
			return test.client, test.err
		}
		if test.change != nil {
			test.change(s)
		}
		ca := s.drive().etcdCA()
		for what, got := range map[string]struct {
			err  error
			want string
		}{"trusted": {ca.Trusted(t.Context()), test.trusted}, "shown": {ca.Shown(t.Context()), test.shown}, "withdrawn": {ca.Withdrawn(t.Context()), test.withdrawn}} {
			if (got.err == nil) != (got.want == "") || got.err != nil && !strings.Contains(got.err.Error(), got.want) {
				t.Errorf("%s: %s: %v", test.reason, what, got.err)
			}
		}
	}
}

// TestEtcdCARecord has the record of etcd's identity know both keys from when the new one
// signs until the previous one is dropped.
func TestEtcdCARecord(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, second := trusttest.NamedCA(t, "fleet-etcd-ca", later), trusttest.NamedCA(t, "fleet-etcd-ca-2", later)
	one1, two2 := trust.KeyFingerprint(first.PEM), trust.KeyFingerprint(second.PEM)
	for _, test := range []struct {
		reason       string
		from, to     generation.InUse
		ca, also, is string
	}{
		{"the next one is made", one, next, one1, "", "1,2"},
		{"it signs", next, both, two2, one1, "2,1"},
		{"the previous one is dropped", both, two, two2, "", "2"},
	} {
		s := rotatingEtcd(t, test.from, first, second)
		s.in(t, s.Registry.DeepCopy())
		record := *s.Identity.Record
		if test.from.Previous() {
			record.CA, record.AlsoCA = two2, one1
		}
		s.Identity = identity.New(s.Objects)
		s.Identity.Record = &record
		if err := s.drive().etcdCA().Record(t.Context(), test.to); err != nil {
			t.Fatal(err)
		}
		read := identity.Read(t.Context(), s.Objects)
		if read.Err != nil || read.Record.CA != test.ca || read.Record.AlsoCA != test.also || read.Record.Generations.String() != test.is || read.Record.ClusterID != "c" {
			t.Errorf("%s: %+v, %v", test.reason, read.Record, read.Err)
		}
	}
}

// TestEtcdCAWithdrawn takes the previous CA from servers before members, and from members in
// the last phase; the operator itself is one of those that ask.
func TestEtcdCAWithdrawn(t *testing.T) {
	later := time.Now().Add(time.Hour)
	first, second := trusttest.NamedCA(t, "fleet-etcd-ca", later), trusttest.NamedCA(t, "fleet-etcd-ca-2", later)
	all := string(slices.Concat(first.PEM, second.PEM))
	for _, test := range []struct {
		phase            operatorv1alpha1.OperationPhase
		inUse            generation.InUse
		members, clients string
	}{
		{"Trust", next, all, all},
		{"Reissue", both, all, all},
		{"Server", both, all, string(second.PEM)},
		{"Withdrawal", both, string(second.PEM), string(second.PEM)},
		{"Withdrawal", next, all, all}, // the record is behind: the next one does not sign yet
		{"Server", next, all, all},
	} {
		s := rotatingEtcd(t, test.inUse, first, second)
		s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, To: "etcd 2", Phase: test.phase}
		s.drive().withdraw()
		if got := s.Authorities.Rendered(); string(got.Etcd) != test.members || string(got.EtcdClients) != test.clients {
			t.Errorf("%s, %s in use: members trust\n%s\nclients\n%s", test.phase, test.inUse, got.Etcd, got.EtcdClients)
		}
	}
}

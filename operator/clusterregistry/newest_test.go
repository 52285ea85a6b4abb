package clusterregistry

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestUntilEnd has an operator that ends record how far etcd got since the last record, and
// change nothing of a registry that is paused, nor of an etcd that went back.
func TestUntilEnd(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*scope, *etcd.Record)
		want   int64
	}{
		{"etcd grew", func(*scope, *etcd.Record) {}, 140},
		{"it is paused", func(s *scope, _ *etcd.Record) { s.Registry.Spec.Paused = true }, 100},
		{"it went back", func(_ *scope, record *etcd.Record) { record.WentBack = &etcd.WentBack{ID: "c1-2", From: 100, To: 60} }, 100},
	} {
		r, s, _ := lostScope(t, "null")
		record := *s.Identity.Record
		record.Joining, record.Newest = "", etcd.Newest{Position: etcd.Position{Revision: 100, Mark: 90}, Time: s.Now}
		test.change(s, &record)
		if err := s.Identity.Write(t.Context(), &record); err != nil {
			t.Fatal(err)
		}
		if err := s.Client.Create(t.Context(), s.Registry.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		r.revisions.Note(client.ObjectKeyFromObject(s.Registry).String(), etcd.Seen{Revision: 140, Time: s.Now})
		r.revisions.Note("team/gone", etcd.Seen{Revision: 7, Time: s.Now})
		ended, end := context.WithCancel(t.Context())
		end()
		if err := r.untilEnd(ended); err != nil {
			t.Fatal(err)
		}
		if got := identity.Read(t.Context(), s.Objects).Record.Newest; got.Revision != test.want || got.Mark != 90 {
			t.Errorf("%s: recorded is %+v", test.reason, got)
		}
	}
}

// TestUntilEndExternal has an operator that ends record how far an external etcd got, of which
// the status has the record, and nothing of one that is not known, went back or is paused.
func TestUntilEndExternal(t *testing.T) {
	for reason, test := range map[string]struct {
		spec, status string
		want         int64
	}{
		"it grew":         {"", "clusterID: c, newest: {revision: 100, upkeep: 3, time: '2030-01-02T03:00:00Z'}", 140},
		"it did not grow": {"", "clusterID: c, newest: {revision: 150, time: '2030-01-02T03:00:00Z'}", 150},
		"it is not known": {"", "newest: {revision: 100, time: '2030-01-02T03:00:00Z'}", 100},
		"it is paused":    {"paused: true, ", "clusterID: c, newest: {revision: 100, time: '2030-01-02T03:00:00Z'}", 100},
		"it went back":    {"", "clusterID: c, newest: {revision: 100, time: '2030-01-02T03:00:00Z'}}, recovery: {id: c-1, lastRevision: 100, lostTime: '2030-01-02T03:00:00Z'", 100},
	} {
		s := newScope(operandtest.New(t, "{spec: {"+test.spec+"etcd: {external: {endpoints: ['https://a:2379']}}}, status: {etcd: {"+test.status+"}}}"))
		r := &Reconciler{HostCluster: s.HostCluster}
		stored := s.Registry.DeepCopy()
		if err := s.Client.Create(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		r.revisions.Note(client.ObjectKeyFromObject(stored).String(), etcd.Seen{Revision: 140, Time: s.Now})
		ended, end := context.WithCancel(t.Context())
		end()
		if err := r.untilEnd(ended); err != nil {
			t.Fatal(err)
		}
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
			t.Fatal(err)
		}
		if got := stored.Status.Etcd.Newest; got == nil || got.Revision != test.want || (stored.Status.Recovery != nil) != (reason == "it went back") {
			t.Errorf("%s: recorded is %+v, %+v", reason, got, stored.Status.Recovery)
		}
	}
}

package clusterregistry

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
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

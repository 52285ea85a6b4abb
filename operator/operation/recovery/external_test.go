package recovery

import (
	"errors"
	"strings"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/pass/passtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestDecideExternal has an external etcd that went back continue with what it has as soon as a
// person approves that, by the name of a member that serves and as much as it lacks.
func TestDecideExternal(t *testing.T) {
	const back = "{id: c-1, lostTime: '2030-01-02T03:00:00Z', lastRevision: 140, members: [{name: 'a:2379'}, {name: 'b:2379', revision: 100, revisionsLost: 40}]}"
	const all = "{from: Member, name: 'b:2379', acceptDataLossUpTo: 40, approvedFor: c-1}"
	for _, test := range []struct {
		reason, approval string
		change           func(*Drive)
		says             string
		accepted         bool
	}{
		{"nothing is approved", "null", nil, "etcd went back", false},
		{"it continues with what it has", all, nil, "etcd continues with what it has", true},
		{"another loss is approved", strings.Replace(all, "c-1", "c-0", 1), nil, "etcd went back", false},
		{"more is lost than is accepted", strings.Replace(all, "40", "39", 1), nil, "lacks 40 known revisions", false},
		{"a member that does not serve", strings.Replace(all, "b:", "a:", 1), nil, "spec.recovery.name is a:2379, which does not serve", false},
		{"there is no such member", strings.Replace(all, "b:", "z:", 1), nil, "etcd has no such member", false},
		{"it is paused", all, func(d *Drive) { d.Freeze("spec.paused is false") }, "nothing is decided until spec.paused is false", false},
		{"it was just found", all, func(d *Drive) { d.Before.Recovery = nil }, "etcd went back", false},
	} {
		known := passtest.New(t, "{spec: {etcd: {external: {endpoints: ['https://a:2379', 'https://b:2379']}}, recovery: "+test.approval+"}, status: {etcd: {clusterID: c, newest: {revision: 140, time: '2030-01-02T03:00:00Z'}}, recovery: "+back+"}}")
		d := &Drive{Pass: known.Pass, Revisions: &etcd.Revisions{}}
		d.Members.State = etcd.State{Members: []etcd.Member{{Name: "a:2379", Err: errors.New("it does not answer")}, {Name: "b:2379", ID: "b", Revision: 110, Position: etcd.Position{Revision: 110}}}}
		d.Members.Verdict = verdict.Waiting(operatorv1alpha1.ReasonWentBack, "etcd went back").AsReadOnly()
		d.Revisions.Note("team/fleet", etcd.Seen{Revision: 140, Time: d.Now})
		if test.change != nil {
			test.change(d)
		}
		before := WentBack(d.Pass)
		v := d.Decide(t.Context())
		if before == nil || before.From-before.To != 40 || v.Err != nil || !strings.Contains(v.Message, test.says) || test.accepted == (v.State == verdict.ReadOnly) {
			t.Errorf("%s: %+v: %+v", test.reason, before, v)
		}
		status := &d.Registry.Status
		if accepted := status.Recovery == nil; accepted != test.accepted || accepted != (WentBack(d.Pass) == nil) || accepted && (status.Etcd.Newest.Revision != 110 || d.Revisions.Newest("team/fleet") != 0) {
			t.Errorf("%s: %+v, %+v", test.reason, status.Recovery, status.Etcd.Newest)
		}
		if test.accepted {
			if record, isNew := identity.External(status).Follow(etcd.Position{Revision: 111}, 0, d.Now); isNew || record.WentBack != nil {
				t.Errorf("it is found again to have gone back: %+v", record.WentBack)
			}
		}
	}
}

// TestRememberExternal remembers how far an external etcd is that serves, and nothing of one that
// was there before.
func TestRememberExternal(t *testing.T) {
	for _, test := range []struct {
		reason, status string
		want           int64
	}{{"it is known", "{clusterID: c}", 140}, {"another one was", "{}", 110}} {
		d := &Drive{Pass: passtest.New(t, "{spec: {etcd: {external: {endpoints: ['https://b:2379']}}}, status: {etcd: "+test.status+"}}").Pass, Revisions: &etcd.Revisions{}}
		d.Revisions.Note("team/fleet", etcd.Seen{Revision: 140, Time: d.Now})
		d.Members.State = etcd.State{Members: []etcd.Member{{Name: "b:2379", ID: "b", Revision: 110, Position: etcd.Position{Revision: 110}}}}
		if v := d.Decide(t.Context()); !v.Complete() || d.Revisions.Newest("team/fleet") != test.want {
			t.Errorf("%s: %+v, %d", test.reason, v, d.Revisions.Newest("team/fleet"))
		}
	}
}

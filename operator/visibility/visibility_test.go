package visibility

import (
	"cmp"
	"strings"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/identity"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass/passtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestVisibility hides clusters where the spec says so, and shows them again only where that
// is approved for the time that they are hidden now.
func TestVisibility(t *testing.T) {
	const all, sets, id = operatorv1alpha1.VisibilityAll, operatorv1alpha1.VisibilityClusterSets, "x7k2mq4p"
	upgrading := func(s *passtest.Known) {
		s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade}
	}
	for _, test := range []struct {
		reason        string
		spec          operatorv1alpha1.Visibility
		approved      string
		recorded      string
		left          string // with the data, in the record of etcd's identity
		hides, absent bool
		change        func(*passtest.Known)
		want          operatorv1alpha1.Visibility
		held          string
		keeps         bool
	}{
		{reason: "nothing is asked for", want: all},
		{reason: "all", spec: all, want: all},
		{reason: "to be hidden", spec: sets, want: sets},
		{reason: "to be hidden, before there are servers", spec: sets, absent: true, want: sets},
		{reason: "hidden", spec: sets, hides: true, recorded: id, want: sets, keeps: true},
		{reason: "hidden, and not recorded yet", spec: sets, hides: true, want: sets, keeps: true},
		{reason: "hidden, and there are no servers at the moment", spec: sets, recorded: id, absent: true, want: sets, keeps: true},
		{reason: "shown without an approval", hides: true, recorded: id, want: sets, held: "VisibilityNotApproved", keeps: true},
		{reason: "shown with one of before", spec: all, approved: "before", hides: true, recorded: id, want: sets, held: "VisibilityNotApproved", keeps: true},
		{reason: "shown without an approval, and the status is lost", spec: all, hides: true, want: sets, held: "VisibilityNotApproved", keeps: true},
		{reason: "shown without an approval, and the servers are lost", spec: all, recorded: id, absent: true, want: sets, held: "VisibilityNotApproved", keeps: true},
		{reason: "approved", spec: all, approved: id, hides: true, recorded: id, want: all, keeps: true},
		{reason: "approved, and there are no servers at the moment", approved: id, recorded: id, absent: true, want: all, keeps: true},
		{reason: "approved and done", spec: all, approved: id, recorded: id, want: all},
		{reason: "approved and done, and the record was not written", spec: all, approved: id, left: id, want: all},
		{reason: "shown, with data of a registry that hid clusters", left: id, absent: true, want: sets, held: "VisibilityNotApproved", keeps: true},
		{reason: "the same with an approval of before", spec: all, approved: "before", left: id, absent: true, want: sets, held: "VisibilityNotApproved", keeps: true},
		{reason: "the same when it is approved", spec: all, approved: id, left: id, absent: true, want: all, keeps: true},
		{reason: "hidden, with such data", spec: sets, left: id, absent: true, want: sets, keeps: true},
		{reason: "shown, with data of a registry that did not", absent: true, want: all},
		{reason: "the approval is used up", spec: sets, approved: id, want: sets},
		{reason: "not approved, in an upgrade", hides: true, recorded: id, change: upgrading, want: sets, keeps: true},
		{reason: "hidden, in an upgrade", spec: sets, hides: true, recorded: id, change: upgrading, want: sets, keeps: true},
	} {
		s := passtest.New(t, "{spec: {mode: Aggregated, etcd: {replicas: 3}}}")
		s.Registry.Spec.Server.Authorization = &operatorv1alpha1.Authorization{Visibility: test.spec, VisibilityApprovedFor: test.approved}
		if test.recorded != "" {
			s.Registry.Status.Visibility = &operatorv1alpha1.VisibilityStatus{ID: test.recorded}
		}
		s.Identity.Record = &etcd.Record{Visibility: test.left}
		if test.change != nil {
			test.change(s)
		}
		found := decide(s.Pass, test.hides, !test.absent)
		v, status := found.Held, s.Registry.Status.Visibility
		if found.Shown != test.want || (status != nil) != test.keeps || status != nil && (status.ID == "" || cmp.Or(test.recorded, test.left) != "" && status.ID != cmp.Or(test.recorded, test.left)) {
			t.Errorf("%s: shows %s, recorded %v", test.reason, found.Shown, status)
		}
		if held := v.State == verdict.Degraded; held != (test.held != "") || held && v.Reason != test.held || !held && !v.Complete() {
			t.Errorf("%s: %+v", test.reason, v)
		}
		if test.held == operatorv1alpha1.ReasonVisibilityNotApproved && !strings.Contains(v.Message, "visibilityApprovedFor to "+status.ID) {
			t.Errorf("%s: %s", test.reason, v.Message)
		}
	}
}

// TestRecordVisibility leaves with the data that clusters were hidden, until it was approved to
// show them.
func TestRecordVisibility(t *testing.T) {
	s := passtest.New(t, "{spec: {mode: Aggregated, etcd: {replicas: 3}}}")
	s.HostCluster = operandtest.Host(t, s.Registry.DeepCopy())
	hidden := &operatorv1alpha1.VisibilityStatus{ID: "x7k2mq4p"}
	if s.Registry.Status.Visibility = hidden; record(t.Context(), s.Pass) != nil || s.Identity.Record != nil {
		t.Errorf("before there is an etcd: %+v", s.Identity.Record)
	}
	if err := s.Identity.Write(t.Context(), &etcd.Record{InitialClusterState: "new", Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		reason string
		status *operatorv1alpha1.VisibilityStatus
		want   string
	}{{"all", nil, ""}, {"hidden", hidden, "x7k2mq4p"}, {"still", hidden, "x7k2mq4p"}, {"all again", nil, ""}} {
		s.Registry.Status.Visibility = test.status
		if err := record(t.Context(), s.Pass); err != nil {
			t.Fatal(err)
		}
		if s.Identity = identity.Read(t.Context(), s.Objects); s.Identity.Err != nil || s.Identity.Record.Visibility != test.want {
			t.Errorf("%s: %v, %+v", test.reason, s.Identity.Err, s.Identity.Record)
		}
	}
	s.Freeze("a person says so")
	if s.Registry.Status.Visibility = hidden; record(t.Context(), s.Pass) != nil || s.Identity.Record.Visibility != "" {
		t.Errorf("while nothing may be written: %+v", s.Identity.Record)
	}
}

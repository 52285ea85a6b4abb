package clusterregistry

import (
	"strings"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// TestVisibility hides clusters where the spec says so, and shows them again only where that
// is approved for the time that they are hidden now.
func TestVisibility(t *testing.T) {
	const all, sets, id = operatorv1alpha1.VisibilityAll, operatorv1alpha1.VisibilityClusterSets, "x7k2mq4p"
	way := func(from string) func(*scope) {
		return func(s *scope) { s.upgrade = &upgrade.Upgrade{From: version.Release{Layout: from}} }
	}
	for _, test := range []struct {
		reason        string
		spec          operatorv1alpha1.Visibility
		approved      string
		recorded      string
		hides, absent bool
		layout        string
		change        func(*scope)
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
		{reason: "the approval is used up", spec: sets, approved: id, want: sets},
		{reason: "not approved, in an upgrade", hides: true, recorded: id, change: way("v2"), want: sets, keeps: true},
		{reason: "on the way from a release that can't", spec: sets, change: way("v1"), want: all},
		{reason: "on the way from a release that can", spec: sets, hides: true, recorded: id, change: way("v2"), want: sets, keeps: true},
		{reason: "a release that can't", spec: sets, layout: "v1", want: all, held: "VisibilityUnsupported"},
	} {
		s := rotating(t, "Aggregated", "{}", one, one)
		s.Registry.Spec.Server.Authorization = &operatorv1alpha1.Authorization{Visibility: test.spec, VisibilityApprovedFor: test.approved}
		s.release.Version, s.release.Layout = "v0.4.0", "v2"
		if test.layout != "" {
			s.release.Layout = test.layout
		}
		if test.recorded != "" {
			s.Registry.Status.Visibility = &operatorv1alpha1.VisibilityStatus{ID: test.recorded}
		}
		if test.change != nil {
			test.change(s)
		}
		s.visibility = s.decideVisibility(test.hides, !test.absent)
		v, status := s.withheld(), s.Registry.Status.Visibility
		if s.visibility.shown != test.want || (status != nil) != test.keeps || status != nil && (status.ID == "" || test.recorded != "" && status.ID != test.recorded) {
			t.Errorf("%s: shows %s, recorded %v", test.reason, s.visibility.shown, status)
		}
		if held := v.State == verdict.Degraded; held != (test.held != "") || held && v.Reason != test.held || !held && !v.Complete() {
			t.Errorf("%s: %+v", test.reason, v)
		}
		if test.held == operatorv1alpha1.ReasonVisibilityNotApproved && !strings.Contains(v.Message, "visibilityApprovedFor to "+status.ID) {
			t.Errorf("%s: %s", test.reason, v.Message)
		}
	}
}

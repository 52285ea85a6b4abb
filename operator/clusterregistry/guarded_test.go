package clusterregistry

import (
	"strings"
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operation/upgrade"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestUnguarded says that servers of a release without guarded fields don't have what the
// spec asks for, unless an upgrade is under way, whose completion nothing may block.
func TestUnguarded(t *testing.T) {
	for _, test := range []struct {
		reason, guarded, layout string
		change                  func(*scope)
		want                    bool
	}{
		{"a release without", "Enforce", "v1", func(*scope) {}, true},
		{"a release without, to warn", "Warn", "v1", func(*scope) {}, true},
		{"a release with", "Enforce", "v2", func(*scope) {}, false},
		{"nothing is guarded", "Off", "v1", func(*scope) {}, false},
		{"an upgrade is under way", "Enforce", "v1", func(s *scope) { s.upgrade = &upgrade.Upgrade{} }, false},
		{"nothing is installed yet", "Enforce", "v1", func(s *scope) { s.Registry.Status.History = nil }, false},
	} {
		s := rotating(t, "Aggregated", "{}", one, one)
		s.Registry.Spec.Server.Authorization = &operatorv1alpha1.Authorization{GuardedFields: operatorv1alpha1.GuardedFields(test.guarded)}
		s.Registry.Status.History = []operatorv1alpha1.Transition{{Version: "v0.3.0", State: operatorv1alpha1.TransitionCompleted}}
		s.release.Version, s.release.Layout = "v0.3.0", test.layout
		test.change(s)
		v := s.withheld()
		if got := v.State == verdict.Degraded && v.Reason == operatorv1alpha1.ReasonGuardedFieldsUnsupported; got != test.want || !got && !v.Complete() {
			t.Errorf("%s: %+v", test.reason, v)
		}
		if test.want && !strings.Contains(v.Message, "guardedFields is "+test.guarded+", and the servers of v0.3.0 don't have it") {
			t.Errorf("%s: %s", test.reason, v.Message)
		}
	}
}

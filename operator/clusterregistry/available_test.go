package clusterregistry

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/available"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/version"
)

// TestReliable is about the versions that must be served: those that a client of
// before and after an upgrade uses alike.
func TestReliable(t *testing.T) {
	s := upgrading(t, "v0.1.0", "v0.2.0", "Verification", "")
	if v := s.plan(released); !v.Complete() {
		t.Fatal(v)
	}
	if got := strings.Join(s.reliable(released), " "); got != "v1alpha1" {
		t.Errorf("in the upgrade that brings v1beta1 they are %s", got)
	}
	s = look(t, "{spec: {mode: Aggregated}, status: {version: v0.2.0}}")
	s.Release.Serves = nil
	if got := strings.Join(s.reliable(released), " "); got != "v1alpha1 v1beta1" {
		t.Errorf("where nothing is pass.Planned they are %s", got)
	}
	s.Registry.Status.Operation = &operatorv1alpha1.Operation{From: "v0.2.0", To: "v9.0.0"}
	if got := s.reliable(released); len(got) > 0 {
		t.Errorf("in an upgrade that is not known they are %s", got)
	}
	s.Registry.Status.Operation, s.Registry.Status.Version = nil, "v9.0.0"
	if got := s.reliable(released); len(got) > 0 {
		t.Errorf("where the release is not known they are %s", got)
	}
	if got := strings.Join(version.Served(released), " "); got != "v1alpha1 v1beta1" {
		t.Errorf("and known are %s", got)
	}
}

// TestAvailableReported is about the sum, and what is told.
func TestAvailableReported(t *testing.T) {
	s := look(t, "{spec: {mode: Aggregated}, status: {"+complete[2:]+"}}")
	for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
		s.record(kind, done)
	}
	s.available = available.Found{Condition: available.Condition("False", "NotAvailable", "no server answers"), After: verdict.Soon}
	conditions := s.conditions()
	if c := meta.FindStatusCondition(conditions, "Ready"); c.Status != "False" || c.Reason != "NotAvailable" || c.Message != "Available: no server answers" {
		t.Errorf("Ready is %+v", c)
	}
	if c := conditions[len(conditions)-2]; c.Type != "Available" {
		t.Errorf("before Ready comes %s", c.Type)
	}
	if after, err := s.next(); after != verdict.Soon || err != nil {
		t.Errorf("it is asked again in %s, %v", after, err)
	}
	s.Registry.DeletionTimestamp = timeAt(s.Now)
	if c := s.availableCondition(); c.Status != "False" || c.Reason != "Deleting" || telling(&metav1.Condition{Type: "Available", Status: "True"}, c) {
		t.Errorf("in a deletion it is %+v", c)
	}
	for _, test := range []struct {
		old, now string
		want     bool
	}{{"", "Unknown", false}, {"Unknown", "True", true}, {"True", "True", false}, {"True", "False", true}, {"False", "False", false}, {"False", "True", true}} {
		var old *metav1.Condition
		if test.old != "" {
			old = &metav1.Condition{Status: metav1.ConditionStatus(test.old)}
		}
		if got := telling(old, available.Condition(metav1.ConditionStatus(test.now), "R", "")); got != test.want {
			t.Errorf("%q -> %q: an event: %t", test.old, test.now, got)
		}
	}
}

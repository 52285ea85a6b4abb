package clusterregistry

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/operation/recovery"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestNote adds what a person should know to a part that is ready, to what is known of it already.
func TestNote(t *testing.T) {
	s := look(t, operandtest.InstalledAggregated)
	s.record(operatorv1alpha1.ConditionEtcdReady, done.Note("VolumesGrowing", "they grow"))
	s.record(operatorv1alpha1.ConditionServerReady, verdict.Waiting("ServersNotReady", "1 of 2"))
	for _, condition := range []string{operatorv1alpha1.ConditionEtcdReady, operatorv1alpha1.ConditionServerReady, operatorv1alpha1.ConditionAPIServiceReady} {
		s.note([]pass.Note{{Condition: condition, Reason: "Pending", Message: "it waits"}, {Condition: condition, Reason: "Other", Message: "and waits"}})
	}
	if c := s.condition(operatorv1alpha1.ConditionEtcdReady, ""); c.Status != metav1.ConditionTrue || c.Reason != "VolumesGrowing" || !strings.HasSuffix(c.Message, "; they grow; it waits; and waits") {
		t.Errorf("one that is ready: %+v", c)
	}
	if c := s.condition(operatorv1alpha1.ConditionServerReady, ""); c.Message != "1 of 2" {
		t.Errorf("one that is not: %+v", c)
	}
	if c := s.condition(operatorv1alpha1.ConditionAPIServiceReady, ""); c.Status != metav1.ConditionUnknown {
		t.Errorf("one that was not reached: %+v", c)
	}
}

// TestVerdictOfEtcd is composed of what the stage of etcd found and of what was found since. Who was
// called first makes no difference.
func TestVerdictOfEtcd(t *testing.T) {
	full, empty := verdict.Waiting(operatorv1alpha1.ReasonNoSpace, "it is full"), verdict.Waiting(operatorv1alpha1.ReasonDataLost, "it is empty")
	quorum := verdict.Waiting(operatorv1alpha1.ReasonQuorumLost, "2 of 3 are gone")
	stage := func(v verdict.Verdict) func(*scope) {
		return func(s *scope) { s.record(operatorv1alpha1.ConditionEtcdReady, v) }
	}
	lost := func(s *scope) { s.since.lost = "a new one comes" }
	waits := func(s *scope) { s.since.full = "; raise the size" }
	recovers := func(s *scope) { s.recovered(recovery.Found{Etcd: &quorum}) }
	noted := func(s *scope) {
		s.note([]pass.Note{{Condition: operatorv1alpha1.ConditionEtcdReady, Reason: "Pending", Message: "it waits"}})
	}
	for reason, test := range map[string]struct {
		found      []func(*scope)
		want, says string
		reached    bool
	}{
		"its stage was not reached":         {[]func(*scope){lost, noted}, "", "", false},
		"a member's data is lost":           {[]func(*scope){stage(empty), lost}, operatorv1alpha1.ReasonDataLost, "it is empty; a new one comes", true},
		"it is ready":                       {[]func(*scope){stage(done), lost}, "", "", true},
		"it is ready, and something waits":  {[]func(*scope){stage(done), noted}, "Pending", "it waits", true},
		"it is not ready":                   {[]func(*scope){stage(empty), noted}, operatorv1alpha1.ReasonDataLost, "it is empty", true},
		"it is full, and nothing gives way": {[]func(*scope){stage(full), waits, noted}, operatorv1alpha1.ReasonNoSpace, "it is full; raise the size", true},
		"it has lost its quorum":            {[]func(*scope){stage(full), waits, recovers, noted}, operatorv1alpha1.ReasonQuorumLost, "2 of 3 are gone", true},
		"it has, and a member is replaced":  {[]func(*scope){stage(empty), recovers, lost}, operatorv1alpha1.ReasonQuorumLost, "2 of 3 are gone; a new one comes", true},
	} {
		for range test.found {
			s := look(t, operandtest.InstalledAggregated)
			for _, found := range test.found {
				found(s)
			}
			if v, reached := s.Pass.Verdict(operatorv1alpha1.ConditionEtcdReady); v.Reason != test.want || v.Message != test.says || reached != test.reached {
				t.Errorf("%s: %+v, reached %v", reason, v, reached)
			}
			test.found = append(test.found[1:], test.found[0]) // another order
		}
	}
}

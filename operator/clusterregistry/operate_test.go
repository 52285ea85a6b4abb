package clusterregistry

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestNote adds what a person should know to a part that is ready, to what is known of it already.
func TestNote(t *testing.T) {
	s := look(t, operandtest.InstalledAggregated)
	s.record(operatorv1alpha1.ConditionEtcdReady, done.Note("VolumesGrowing", "they grow"))
	s.record(operatorv1alpha1.ConditionServerReady, verdict.Waiting("ServersNotReady", "1 of 2"))
	for _, condition := range []string{operatorv1alpha1.ConditionEtcdReady, operatorv1alpha1.ConditionServerReady, operatorv1alpha1.ConditionAPIServiceReady} {
		s.note(pass.Note{Condition: condition, Reason: "Pending", Message: "it waits"}, pass.Note{Condition: condition, Reason: "Other", Message: "and waits"})
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

// TestForget drops what is remembered of the etcd of a registry that is gone.
func TestForget(t *testing.T) {
	s := look(t, operandtest.InstalledAggregated)
	r, key := reading(t, s), client.ObjectKeyFromObject(s.Registry)
	r.revisions.Note(key.String(), etcd.Seen{Revision: 900, Time: s.Now})
	if err := r.sweep(t.Context(), key); err != nil || r.revisions.Newest(key.String()) != 0 {
		t.Errorf("it remembers revision %d, %v", r.revisions.Newest(key.String()), err)
	}
}

// defragmented returns a complete registry whose etcd is being defragmented, with a version in
// the spec.
func defragmented(t *testing.T, version, phase string) *scope {
	t.Helper()
	return look(t, "{spec: {version: "+version+", mode: Aggregated, etcd: {replicas: 3}}, status: {version: v0.1.0, etcdVersion: v3.6.14, operation: {type: Defragmentation, to: m1, phase: "+phase+", phaseStartedTime: null}"+operandtest.Complete+"}}")
}

// TestDefragmentAndUpgrade has an upgrade wait for a member that is being defragmented, and
// come first otherwise.
func TestDefragmentAndUpgrade(t *testing.T) {
	for phase, waits := range map[string]bool{"Preflight": false, "Defragmentation": true} {
		s := defragmented(t, "v0.2.0", phase)
		v := s.plan(released)
		if waits != strings.Contains(v.Message, "the upgrade to v0.2.0 starts when the defragmentation of etcd is complete (the condition Progressing says what is awaited); v0.1.0 keeps running") || waits != (v.Reason == operatorv1alpha1.ReasonOperationInProgress) || waits != (s.upgrade == nil) {
			t.Errorf("%s: %+v, %+v", phase, v, s.Registry.Status.Operation)
		}
		if s.Release.Version != "v0.1.0" {
			t.Errorf("%s: it renders %s", phase, s.Release.Version)
		}
	}
	s := defragmented(t, "v0.1.0", "Defragmentation")
	if v := s.plan(released); !v.Complete() || s.upgrade != nil {
		t.Errorf("without an upgrade: %+v", v)
	}
	s.operation = verdict.Waiting(string(operatorv1alpha1.PhaseDefragmentation), "m1 is through")
	if c := s.progressing(nil); c.Status != metav1.ConditionTrue || c.Reason != string(operatorv1alpha1.PhaseDefragmentation) {
		t.Errorf("it says %+v", c)
	}
	if message := s.well(operatorv1alpha1.ConditionVersionSupported); message != "v0.1.0 is supported on Kubernetes v1.37.1" {
		t.Errorf("it says %q", message)
	}
}

// TestFullAndUpgrade has an upgrade wait until etcd has room, also before that is observed.
func TestFullAndUpgrade(t *testing.T) {
	s := defragmented(t, "v0.2.0", "Preflight")
	s.Before.Conditions = []metav1.Condition{{Type: operatorv1alpha1.ConditionEtcdReady, Status: "False", Reason: operatorv1alpha1.ReasonNoSpace}}
	if v := s.plan(released); v.Reason != operatorv1alpha1.ReasonOperationInProgress || s.upgrade != nil || s.Registry.Status.Operation == nil {
		t.Errorf("%+v, %+v", v, s.Registry.Status.Operation)
	}
}

// TestMembersBesideUpgrade adds to an upgrade what is done to members meanwhile.
func TestMembersBesideUpgrade(t *testing.T) {
	s := look(t, operandtest.InstalledAggregated)
	members := verdict.Waiting(operatorv1alpha1.ReasonMembersChanging, "fleet-etcd-1 is removed next").In(time.Second)
	upgrade := verdict.Waiting("Etcd", "etcd 1/3").In(time.Minute)
	if v := s.besides(members, upgrade); v.Message != "etcd 1/3; besides, fleet-etcd-1 is removed next" || v.Reason != "Etcd" || v.After != time.Second {
		t.Errorf("%+v", v)
	}
	if v := s.besides(done, upgrade); v.Message != upgrade.Message || v.After != time.Minute {
		t.Errorf("nothing is done to members: %+v", v)
	}
}

// TestLostNoted says of an etcd that is not ready when a member that is lost is replaced.
func TestLostNoted(t *testing.T) {
	s := look(t, operandtest.InstalledAggregated)
	s.noteLost("a new one comes")
	if _, reached := s.verdicts[operatorv1alpha1.ConditionEtcdReady]; reached {
		t.Error("what was not reached has a verdict")
	}
	s.record(operatorv1alpha1.ConditionEtcdReady, verdict.Waiting(operatorv1alpha1.ReasonDataLost, "it is empty"))
	s.noteLost("")
	s.noteLost("a new one comes")
	if got := s.verdicts[operatorv1alpha1.ConditionEtcdReady].Message; got != "it is empty; a new one comes" {
		t.Errorf("%q", got)
	}
	s.record(operatorv1alpha1.ConditionEtcdReady, done)
	s.noteLost("a new one comes")
	if got := s.verdicts[operatorv1alpha1.ConditionEtcdReady].Message; got != "" {
		t.Errorf("one that is ready: %q", got)
	}
}

// TestRotateAndUpgrade has an upgrade wait for a rotation that has begun to change something,
// and come first otherwise; a rotation waits for an upgrade.
func TestRotateAndUpgrade(t *testing.T) {
	for phase, waits := range map[operatorv1alpha1.OperationPhase]bool{"Preflight": false, "Issuance": true, "Withdrawal": true} {
		s := ready(t, "Independent")
		s.Registry.Spec.Version, s.Registry.Spec.TLS.Rotation.Client = "v0.2.0", 2
		s.Authorities.Clients.InUse = generation.InUse{Signing: 1}
		s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationRotation, From: "client 1", To: "client 2", Phase: phase}
		v := s.plan(released)
		if waits != strings.Contains(v.Message, "the upgrade to v0.2.0 starts when the rotation of a CA is complete (the condition Progressing says what is awaited); v0.1.0 keeps running") || waits == (s.upgrade != nil) {
			t.Errorf("%s: %+v, %+v", phase, v, s.Registry.Status.Operation)
		}
		if s.upgrade != nil {
			s.note(reading(t, s).rotation(s).Notes()...)
			if c := s.condition(operatorv1alpha1.ConditionCertificatesReady, ""); c.Reason != "RotationPending" || !strings.Contains(c.Message, "the client CA is rotated to generation 2 when the upgrade is complete") {
				t.Errorf("in an upgrade: %+v", c)
			}
		}
	}
}

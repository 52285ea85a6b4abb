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
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestForget drops what is remembered of the etcd of a registry that is gone.
func TestForget(t *testing.T) {
	s := look(t, operandtest.InstalledAggregated)
	r, key := reading(t, s), client.ObjectKeyFromObject(s.Registry)
	r.revisions.Note(key.String(), etcd.Seen{Revision: 900, Time: s.Now})
	if err := r.sweep(t.Context(), key); err != nil || r.revisions.Newest(key.String()) != 0 {
		t.Errorf("it remembers revision %d, %v", r.revisions.Newest(key.String()), err)
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

// TestOperationNoted says what is under way beside an upgrade, and has what is due wait for one.
func TestOperationNoted(t *testing.T) {
	s := ready(t, "Independent")
	s.operation = verdict.Waiting(string(operatorv1alpha1.PhaseDefragmentation), "m1 is through")
	if c := s.progressing(nil); c.Status != metav1.ConditionTrue || c.Reason != string(operatorv1alpha1.PhaseDefragmentation) {
		t.Errorf("it says %+v", c)
	}
	if message := s.well(operatorv1alpha1.ConditionVersionSupported); message != "v0.1.0 is supported on Kubernetes v1.37.1" {
		t.Errorf("it says %q", message)
	}
	s.Registry.Spec.TLS.Rotation.Client, s.Authorities.Clients.InUse = 2, generation.InUse{Signing: 1}
	s.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: operatorv1alpha1.OperationUpgrade}
	s.note(reading(t, s).rotation(s).Notes())
	if c := s.condition(operatorv1alpha1.ConditionCertificatesReady, ""); c.Reason != "RotationPending" || !strings.Contains(c.Message, "the client CA is rotated to generation 2 when the upgrade is complete") {
		t.Errorf("in an upgrade: %+v", c)
	}
}

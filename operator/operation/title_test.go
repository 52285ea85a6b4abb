package operation

import (
	"testing"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestAwaits names what an operation that is due waits for: another one first, since what is not
// steady meanwhile may be its doing.
func TestAwaits(t *testing.T) {
	verdicts := pass.Found{}
	p := pass.New(operandtest.New(t, operandtest.InstalledAggregated), verdicts.Verdict)
	for _, part := range pass.Parts(p.Registry.Spec.Mode) {
		verdicts[part] = verdict.Verdict{}
	}
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "nothing else is under way"},
		{func() { verdicts[operatorv1alpha1.ConditionEtcdReady] = verdict.Waiting("r", "2 of 3") }, "this is resolved: EtcdReady: 2 of 3"},
		{func() { p.Freeze("spec.paused is false") }, "spec.paused is false"},
		{func() { p.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: "Other"} }, "spec.paused is false"},
		{func() { p.Registry.Status.Operation.Type = operatorv1alpha1.OperationReplacement }, "the change of etcd's members is complete"},
		{func() { p.Registry.Status.Operation.Type = operatorv1alpha1.OperationUpgrade }, "the upgrade is complete"},
	} {
		step.change()
		if got := Awaits(p); got != step.want {
			t.Errorf("it waits until %q, want %q", got, step.want)
		}
	}
}

// TestChangesMembers tells the operations apart that change etcd's members.
func TestChangesMembers(t *testing.T) {
	for kind, want := range map[operatorv1alpha1.OperationType]bool{operatorv1alpha1.OperationScale: true, operatorv1alpha1.OperationReplacement: true, operatorv1alpha1.OperationUpgrade: false} {
		if ChangesMembers(&operatorv1alpha1.Operation{Type: kind}) != want || Title(&operatorv1alpha1.Operation{Type: kind}) == "" {
			t.Errorf("%s: %t", kind, !want)
		}
	}
	if ChangesMembers(nil) || Title(nil) != "" {
		t.Error("without an operation")
	}
}

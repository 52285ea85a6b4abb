package clusterregistry

import (
	"strings"
	"testing"

	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestUpgradeVerifies has an upgrade use the registry as clients do, through the host.
func TestUpgradeVerifies(t *testing.T) {
	for serves, want := range map[bool]string{true: "StorageMigration", false: "Verification"} {
		s := upgrading(t, "v0.1.0", "v0.2.0", "Verification", "")
		if v := s.plan(released); !v.Complete() {
			t.Fatal(v)
		}
		r := reading(t, s)
		r.Host = operandtest.Serving(t, serves)
		if v := r.advance(t.Context(), s); v.Complete() || string(s.upgrade.Phase) != want || !serves && !strings.Contains(v.Message, "clusterregistry.k8s.io/v1alpha1 is not discovered") {
			t.Errorf("serves %v: in phase %s: %+v", serves, s.upgrade.Phase, v)
		}
	}
	s := upgrading(t, "v0.1.0", "v0.2.0", "Verification", "")
	s.Registry.Spec.Mode = "Independent"
	if client, err := reading(t, s).upgrade(s).Handler().Actions.Client(t.Context()); client != nil || err == nil || !strings.Contains(err.Error(), "there is no Secret fleet-admin") {
		t.Errorf("without the administrator's certificate: %v, %v", client, err)
	}
}

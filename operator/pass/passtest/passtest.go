// Package passtest makes passes for the tests of those who are given one.
package passtest

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Known is a pass of which a test says what is known.
type Known struct {
	pass.Pass
	// Verdicts are those of the pass, by condition.
	Verdicts pass.Found
}

// New returns a pass of the registry team/fleet with a spec and status in YAML, in a host cluster
// with the given objects. No verdict was reached.
func New(t *testing.T, text string, objects ...client.Object) *Known {
	t.Helper()
	verdicts := pass.Found{}
	return &Known{Pass: pass.New(operandtest.New(t, text, objects...), verdicts.Verdict), Verdicts: verdicts}
}

// Ready has all parts of the registry be ready.
func (k *Known) Ready() {
	for _, condition := range pass.Parts(k.Registry.Spec.Mode) {
		k.Verdicts[condition] = verdict.Verdict{}
	}
}

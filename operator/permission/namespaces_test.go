package permission

import (
	"strings"
	"testing"

	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass/passtest"
)

// TestAggregation is about who may have a registry be a part of the host's API.
func TestAggregation(t *testing.T) {
	for _, test := range []struct {
		reason  string
		mode    string
		allowed []string
		refused bool
	}{
		{"nobody has allowed it", "Aggregated", nil, true},
		{"it is allowed elsewhere", "Aggregated", []string{"platform", "tea", "teams"}, true},
		{"it is allowed here", "Aggregated", []string{"platform", "team"}, false},
		{"it is allowed everywhere", "Aggregated", []string{"*"}, false},
		{"an independent registry takes nothing of the host's", "Independent", nil, false},
	} {
		for _, installed := range []bool{false, true} {
			text := "{spec: {mode: " + test.mode + ", etcd: {replicas: 1}}}"
			if installed {
				text = strings.TrimSuffix(text, "}") + ", status: {" + operandtest.Complete[2:] + "}}"
			}
			v := Namespaces{Aggregated: test.allowed}.Aggregation(passtest.New(t, text).Pass)
			if (!v.Complete()) != test.refused {
				t.Errorf("%s: %+v", test.reason, v)
			}
			if v.Complete() {
				continue
			}
			for _, word := range []string{"namespace team", "AGGREGATED_NAMESPACES", "Subscription", "Independent"} {
				if !strings.Contains(v.Message, word) {
					t.Errorf("%s: the message does not say %q: %s", test.reason, word, v.Message)
				}
			}
			if keeps := strings.Contains(v.Message, "keeps serving"); keeps != installed {
				t.Errorf("%s, installed %v: %s", test.reason, installed, v.Message)
			}
		}
	}
}

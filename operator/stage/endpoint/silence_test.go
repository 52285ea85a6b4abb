package endpoint

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/health"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestSilence asks at the address that clients are given, reconcile after reconcile.
func TestSilence(t *testing.T) {
	type step struct {
		after   time.Duration
		address string
		met     health.Met
		want    string // the reason, empty while clients are taken to get answers
	}
	const node, other = "192.0.2.1:30443", "192.0.2.2:30443"
	for reason, steps := range map[string][]step{
		"a node dies": {{0, node, health.Answers, ""}, {time.Hour, node, health.Silent, ""}, {30 * time.Second, node, health.Silent, ""},
			{30 * time.Second, node, health.Silent, operatorv1alpha1.ReasonAddressSilent}, {time.Hour, node, health.Silent, operatorv1alpha1.ReasonAddressSilent}},
		"it is back": {{0, node, health.Answers, ""}, {time.Minute, node, health.Silent, ""}, {time.Minute, node, health.Silent, operatorv1alpha1.ReasonAddressSilent},
			{time.Second, node, health.Answers, ""}, {time.Minute, node, health.Silent, ""}, {59 * time.Second, node, health.Silent, ""}},
		"a short silence":            {{0, node, health.Answers, ""}, {time.Minute, node, health.Silent, ""}, {30 * time.Second, node, health.Answers, ""}, {40 * time.Second, node, health.Silent, ""}},
		"no way leads there":         {{0, node, health.Silent, ""}, {time.Hour, node, health.Silent, ""}, {24 * time.Hour, node, health.Silent, ""}},
		"another address":            {{0, node, health.Answers, ""}, {time.Minute, other, health.Silent, ""}, {time.Hour, other, health.Silent, ""}},
		"another one, and back":      {{0, node, health.Answers, ""}, {time.Minute, other, health.Silent, ""}, {time.Hour, node, health.Silent, ""}, {time.Hour, node, health.Silent, ""}},
		"a refusal comes from there": {{0, node, health.Refuses, operatorv1alpha1.ReasonWaiting}, {time.Minute, node, health.Silent, ""}, {time.Minute, node, health.Silent, operatorv1alpha1.ReasonAddressSilent}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var silences Silences
			for i, step := range steps {
				time.Sleep(step.after)
				s := stageOf(operandtest.New(t, "{metadata: {uid: u}, spec: {mode: Independent}}"))
				s.Now, s.Silences = time.Now(), &silences
				s.Meet = func(_ context.Context, asked string) (health.Met, error) {
					if asked != step.address {
						t.Errorf("%s was asked", asked)
					}
					if step.met == health.Answers {
						return step.met, nil
					}
					return step.met, errors.New("dial: why")
				}
				v := s.answers(t.Context(), step.address)
				if v.Reason != step.want || v.Complete() == (step.want == operatorv1alpha1.ReasonWaiting) {
					t.Errorf("%s, step %d: %+v", reason, i, v)
				}
				if step.want == operatorv1alpha1.ReasonAddressSilent && (!strings.Contains(v.Message, "no answer from "+node+", the address for clients, since 2000-01-0") || !strings.Contains(v.Message, "dial: why")) {
					t.Errorf("%s, step %d: %s", reason, i, v.Message)
				}
				if i == 1 && reason == "a node dies" && v.After != 30*time.Second {
					t.Errorf("%s: it is asked again in %s", reason, v.After)
				}
			}
		})
	}
}

// TestSilentName says of a name that is not resolved what to do about that, and of an address
// what has it.
func TestSilentName(t *testing.T) {
	const node, record = "the node or the load balancer", "the record of this name"
	for _, test := range []struct {
		err        error
		says, lies string
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: "registry.example"}}, record, node},
		{&net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}, node, record},
	} {
		s := stageOf(operandtest.New(t, "{metadata: {uid: u}, spec: {mode: Independent}}"))
		s.Silences = &Silences{}
		var v verdict.Verdict
		for _, met := range []health.Met{health.Answers, health.Silent, health.Silent} {
			s.Meet = func(context.Context, string) (health.Met, error) { return met, test.err }
			v = s.answers(t.Context(), "registry.example:443")
			s.Now = s.Now.Add(time.Hour)
		}
		if v.Reason != operatorv1alpha1.ReasonAddressSilent || !strings.Contains(v.Message, test.says) || strings.Contains(v.Message, test.lies) {
			t.Errorf("%v: %+v", test.err, v)
		}
	}
}

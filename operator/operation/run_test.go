package operation

import (
	"context"
	"strings"
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

// kind is one kind of operation, and what becomes of it.
type kind struct {
	scripted
	of    operatorv1alpha1.OperationType
	due   bool
	later time.Duration
	// over has it have no handler any more, and held not for now.
	over, held bool
	ended      int
}

func (k *kind) operation() Operation {
	return Operation{
		Types: []operatorv1alpha1.OperationType{k.of},
		Begin: func(context.Context) (*operatorv1alpha1.Operation, verdict.Verdict) {
			if !k.due {
				return nil, verdict.Verdict{After: k.later}
			}
			o := &operatorv1alpha1.Operation{Type: k.of}
			Enter(o, "One", time.Now())
			return o, k.Waiting("starts").In(verdict.AtOnce)
		},
		Handler: func(context.Context) (Handler, verdict.Verdict) {
			switch {
			case k.over:
				return nil, verdict.Verdict{}
			case k.held:
				return nil, k.Waiting("it is held")
			}
			return &k.scripted, verdict.Verdict{}
		},
		Ended: func(Progress) { k.ended++ },
	}
}

// run returns what drives a registry of which an operation is under way in a phase, if one is.
func run(t *testing.T, under operatorv1alpha1.OperationType, phase operatorv1alpha1.OperationPhase) Run {
	t.Helper()
	objects := operandtest.New(t, "{spec: {etcd: {replicas: 1}}}")
	if under != "" {
		objects.Registry.Status.Operation = &operatorv1alpha1.Operation{Type: under, Phase: phase}
		objects.Before = *objects.Registry.Status.DeepCopy()
	}
	return Run{pass.New(objects, pass.Found{}.Verdict)}
}

// TestOneAtATime begins the first of the operations that are due, goes on with it alone until it
// is complete, and only then begins the next.
func TestOneAtATime(t *testing.T) {
	first, second := &kind{of: "First"}, &kind{of: "Second", due: true}
	r := run(t, "", "")
	all := []Operation{first.operation(), second.operation()}
	if v := r.All(t.Context(), all); v.Complete() || r.Registry.Status.Operation.Type != "Second" || len(second.calls) != 0 {
		t.Fatalf("at first: %+v, %+v, ran %v", v, r.Registry.Status.Operation, second.calls)
	}
	first.due = true
	for range 10 {
		r.Before = *r.Registry.Status.DeepCopy() // the next reconcile
		if v := r.All(t.Context(), all); second.ended == 1 {
			if !v.Complete() || v.After != verdict.AtOnce || r.Registry.Status.Operation != nil {
				t.Fatalf("at the end: %+v, %+v", v, r.Registry.Status.Operation)
			}
			break
		}
	}
	if got := strings.Join(second.calls, ", "); got != "One, before Two, Two, before Three, Three" || len(first.calls) != 0 {
		t.Errorf("it went through %s, beside %v", got, first.calls)
	}
	r.Before = *r.Registry.Status.DeepCopy()
	if r.All(t.Context(), all); r.Registry.Status.Operation == nil || r.Registry.Status.Operation.Type != "First" {
		t.Errorf("then there is %+v", r.Registry.Status.Operation)
	}
}

// TestNoneDue returns when to look again at the latest, and leaves what is none of its business.
func TestNoneDue(t *testing.T) {
	all := []Operation{(&kind{of: "First", later: time.Hour}).operation(), (&kind{of: "Second"}).operation(), (&kind{of: "Third", later: time.Minute}).operation()}
	if v := run(t, "", "").All(t.Context(), all); !v.Complete() || v.After != time.Minute {
		t.Errorf("none is due: %+v", v)
	}
	r := run(t, "Other", "One")
	if v := r.All(t.Context(), all); !v.Complete() || v.After != 0 || r.Registry.Status.Operation == nil {
		t.Errorf("another one is under way: %+v, %+v", v, r.Registry.Status.Operation)
	}
}

// TestStep is about an operation that is under way.
func TestStep(t *testing.T) {
	for reason, test := range map[string]struct {
		change func(*kind, Run)
		writes bool
		phase  operatorv1alpha1.OperationPhase
		says   string
		then   operatorv1alpha1.OperationPhase
		ended  int
	}{
		"it goes on":                  {nil, false, "One", "starts", "Two", 0},
		"it is complete":              {nil, false, "Three", "", "", 1},
		"it is over":                  {func(k *kind, _ Run) { k.over = true }, false, "One", "", "", 0},
		"it is held":                  {func(k *kind, _ Run) { k.held = true }, false, "One", "it is held", "One", 0},
		"paused between phases":       {func(_ *kind, r Run) { r.Registry.Spec.Paused = true }, false, "One", "One completed; Two starts when spec.paused is false", "One", 0},
		"nothing may be written":      {func(_ *kind, r Run) { r.Freeze("spec.paused is false") }, true, "One", "nothing is changed now: it continues when spec.paused is false", "One", 0},
		"nothing need be":             {func(_ *kind, r Run) { r.Freeze("spec.paused is false") }, false, "One", "starts", "Two", 0},
		"the host has another phase":  {func(_ *kind, r Run) { r.Registry.Status.Operation.Phase = "Two" }, false, "One", "starts", "Two", 0},
		"a phase that is not written": {func(_ *kind, r Run) { r.Registry.Status.Operation.Phase = "Three" }, false, "Two", "starts", "Three", 0},
	} {
		k, r := &kind{of: "First"}, run(t, "First", test.phase)
		if test.change != nil {
			test.change(k, r)
		}
		o := k.operation()
		o.Writes = test.writes
		v := r.Step(t.Context(), o)
		now := operatorv1alpha1.OperationPhase("")
		if under := r.Registry.Status.Operation; under != nil {
			now = under.Phase
		}
		if now != test.then || k.ended != test.ended || !strings.HasPrefix(v.Message, test.says) || v.Complete() != (test.says == "") {
			t.Errorf("%s: in phase %q, ended %d times: %+v", reason, now, k.ended, v)
		}
	}
}

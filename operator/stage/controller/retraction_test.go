package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// TestRetraction takes reports back only when there was a controller, none is left, and it
// is this registry that is reached.
func TestRetraction(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*Retraction)
		pods   bool
		steps  int
		// says is part of the message, nothing when it is done.
		says  string
		after time.Duration
	}{
		{reason: "nothing is left", steps: 1},
		{reason: "some are left", change: func(r *Retraction) {
			r.Step = func(context.Context) (bool, error) { return false, nil }
		}, says: "Some are left", after: verdict.AtOnce},
		{reason: "it fails", change: func(r *Retraction) {
			r.Step = func(context.Context) (bool, error) { return false, errors.New("cluster east: forbidden") }
		}, says: "The operator will retry: cluster east: forbidden", after: verdict.Backstop},
		{reason: "there was no controller", change: func(r *Retraction) { r.Registry.Status.Inventory = nil }},
		{reason: "there is one", change: func(r *Retraction) {
			r.Rendered.Stages = map[render.Stage][]*unstructured.Unstructured{render.StageController: {rolloutOf(t, 1)}}
		}},
		{reason: "its pod runs still", pods: true, says: "Waiting for pod fleet-controller-x to terminate"},
		{reason: "the registry is not reached", change: func(r *Retraction) { r.Awaits = "APIServiceReady" }, says: "Waiting for APIServiceReady"},
		{reason: "nothing may be changed", change: func(r *Retraction) { r.Freeze("spec.paused is false") }, says: "Waiting until spec.paused is false", after: verdict.Vigil},
	} {
		var objects []client.Object
		if test.pods {
			objects = running(asItWas)
		}
		o := operandtest.New(t, "{spec: {mode: Aggregated}}", objects...)
		o.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{Lease(o)}
		steps := 0
		r := &Retraction{Objects: o, Step: func(context.Context) (bool, error) { steps++; return true, nil }}
		if test.change != nil {
			test.change(r)
		}
		v := r.Run(t.Context())
		if v.Complete() != (test.says == "") || !strings.Contains(v.Message, test.says) || v.After != test.after || steps != test.steps || v.Err != nil {
			t.Errorf("%s: %+v after %d steps", test.reason, v, steps)
		}
	}
}

// TestLeaseIsMade expects that a Lease which is made is the one that a retraction looks for.
func TestLeaseIsMade(t *testing.T) {
	s := newStage(t, healthOnly, "v0.2.0", "v0.2.0")
	if made := Made(s.Objects); !slices.Contains(made, Lease(s.Objects)) {
		t.Errorf("%v", made)
	}
}

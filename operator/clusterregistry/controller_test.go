package clusterregistry

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/pass"
	"github.com/clusterregistry/operator/operator/verdict"
)

const withController = "mode: Aggregated, controllers: {health: {}, registerHost: {name: a}}"

// TestControllerIsNotAwaited has a controller that does not run: Ready is False for it, and
// nothing else changes.
func TestControllerIsNotAwaited(t *testing.T) {
	for status, installed := range map[string]bool{"{}": false, "{" + complete[2:] + "}": true} {
		s := look(t, "{spec: {"+withController+"}, status: "+status+"}")
		for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
			s.record(kind, done)
		}
		s.found[operatorv1alpha1.ConditionControllerReady] = verdict.Waiting("Isolated", "health is isolated").DegradedIf(true)
		conditions := s.conditions()
		for kind, want := range map[string]string{"ControllerReady": "False Isolated: health is isolated", "Ready": "False Isolated: ControllerReady: health is isolated", "Progressing": "False UpToDate: the registry is up to date"} {
			if c := meta.FindStatusCondition(conditions, kind); c == nil || string(c.Status)+" "+c.Reason+": "+c.Message != want {
				t.Errorf("installed %v: %s is %+v, want %s", installed, kind, c, want)
			}
		}
		s.advanceHistory(conditions)
		if last := history.Last(s.Registry); last.State != operatorv1alpha1.TransitionCompleted || !s.Installed() {
			t.Errorf("installed %v: the installation does not complete: %+v", installed, last)
		}
		if s.firstUnusable() != "" || s.Frozen() != "" {
			t.Errorf("installed %v: Available waits for %q, changes for %q", installed, s.firstUnusable(), s.Frozen())
		}
	}
	s := upgrading(t, "v0.1.0", "v0.2.0", "Preflight", "")
	s.Registry.Spec.Controllers = &operatorv1alpha1.Controllers{Health: &operatorv1alpha1.HealthController{}}
	if v := s.plan(released); !v.Complete() {
		t.Fatal(v)
	}
	if h := reading(t, s).upgrade(s).Handler(); slices.Contains(h.Stages, operatorv1alpha1.ConditionControllerReady) {
		t.Errorf("an upgrade waits for %v", h.Stages)
	}
}

// TestControllerRuns says which functions do.
func TestControllerRuns(t *testing.T) {
	for spec, want := range map[string]string{withController: "health and registerHost run", "mode: Aggregated, controllers: {health: {}}": "health runs"} {
		s := look(t, "{spec: {"+spec+"}, status: {"+complete[2:]+"}}")
		for _, kind := range s.allParts() {
			s.record(kind, done)
		}
		conditions := s.conditions()
		if c := meta.FindStatusCondition(conditions, "ControllerReady"); c == nil || c.Status != "True" || c.Reason != "Ready" || c.Message != want {
			t.Errorf("%s: %+v", spec, c)
		}
		if !meta.IsStatusConditionTrue(conditions, "Ready") {
			t.Errorf("%s: not Ready", spec)
		}
	}
}

// TestControllerHolds has a function that holds objects: that is said, and changes nothing of
// what Ready is.
func TestControllerHolds(t *testing.T) {
	s := look(t, "{spec: {mode: Aggregated, controllers: {health: {}}}, status: {"+complete[2:]+"}}")
	for _, kind := range s.allParts() {
		s.record(kind, done)
	}
	s.found[operatorv1alpha1.ConditionControllerReady] = done.Note(operatorv1alpha1.ReasonObjectsHeld, "health: 1 held")
	conditions := s.conditions()
	for kind, want := range map[string]string{"ControllerReady": "True ObjectsHeld: health runs; health: 1 held", "Ready": "True Ready"} {
		if c := meta.FindStatusCondition(conditions, kind); c == nil || !strings.HasPrefix(string(c.Status)+" "+c.Reason+": "+c.Message, want) {
			t.Errorf("%s is %+v, want %s", kind, c, want)
		}
	}
}

// TestControllerConditionGoes with the last function.
func TestControllerConditionGoes(t *testing.T) {
	for spec, stays := range map[string]bool{withController: true, "mode: Aggregated": false} {
		s := look(t, "{spec: {"+spec+"}, status: {conditions: [{type: ControllerReady, status: 'True', reason: Ready, message: '', lastTransitionTime: null}]"+complete+"}}")
		r := reading(t, s, s.Registry.DeepCopy())
		s.Events = events.NewFakeRecorder(20)
		if err := r.writeStatus(t.Context(), s, s.conditions()); err != nil {
			t.Fatal(err)
		}
		now := &operatorv1alpha1.ClusterRegistry{}
		if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(s.Registry), now); err != nil {
			t.Fatal(err)
		}
		if is := meta.FindStatusCondition(now.Status.Conditions, "ControllerReady") != nil; is != stays {
			t.Errorf("%s: the condition is there: %v", spec, is)
		}
	}
}

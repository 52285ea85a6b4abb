package simulation

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// pass lets time pass.
func (w *world) pass(duration time.Duration) {
	for until := time.Now().Add(duration); time.Now().Before(until); {
		w.step()
	}
}

// until lets time pass until something is so, for no longer than that.
func (w *world) until(what string, most time.Duration, is func() bool) {
	w.t.Helper()
	w.note("until %s", what)
	for end := time.Now().Add(most); !is(); w.step() {
		if time.Now().After(end) {
			w.fails("within %s, this did not become so: %s; %s", most, what, w.conditions())
		}
	}
}

// rests expects that nothing goes wrong any more, that the registry becomes ready within a time, and
// that nothing is written from then on.
func (w *world) rests(most time.Duration) {
	w.t.Helper()
	w.faults = faults{}
	w.until("the registry is ready and at rest", most, w.ready)
	quiet := 3 * time.Minute
	w.writes = false // how far etcd is would be recorded
	// What is left to be tidied up, and how far etcd got: five minutes after that was recorded
	// last, with the next look.
	w.pass(8 * time.Minute)
	written := w.written
	w.pass(quiet)
	if w.written != written {
		w.fails("a registry that is ready is written to %d times within %s", w.written-written, quiet)
	}
	if !w.ready() {
		w.fails("it does not stay ready: %s", w.conditions())
	}
	w.writes = true
}

// key is that of the registry.
var key = id{schema.GroupKind{Group: operatorv1alpha1.GroupName, Kind: "ClusterRegistry"}, "team", "fleet"}

// registry returns the registry as the host cluster has it, nil when there is none. It is shared,
// and only read.
func (w *world) registry() *operatorv1alpha1.ClusterRegistry {
	found := w.host.objects[key]
	if found == nil {
		return nil
	}
	r, err := found.as(&operatorv1alpha1.ClusterRegistry{}, false)
	if err != nil {
		w.t.Fatal(err)
	}
	return r.(*operatorv1alpha1.ClusterRegistry)
}

// ready reports whether all of the spec is true.
func (w *world) ready() bool {
	r := w.registry()
	if r == nil || r.Status.ObservedGeneration != r.Generation || r.Status.Operation != nil {
		return false
	}
	return w.condition("Ready").Status == metav1.ConditionTrue && w.condition("Available").Status == metav1.ConditionTrue
}

// condition returns a condition of the registry, an empty one where it has none.
func (w *world) condition(kind string) metav1.Condition {
	if r := w.registry(); r != nil {
		for _, condition := range r.Status.Conditions {
			if condition.Type == kind {
				return condition
			}
		}
	}
	return metav1.Condition{}
}

// conditions says how the registry is.
func (w *world) conditions() string {
	r := w.registry()
	if r == nil {
		return "there is no registry"
	}
	var out []string
	for _, condition := range r.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s (%s: %s)", condition.Type, condition.Status, condition.Reason, condition.Message))
	}
	if r.Status.Operation != nil {
		out = append(out, fmt.Sprintf("operation %+v", *r.Status.Operation))
	}
	return strings.Join(out, "\n  ")
}

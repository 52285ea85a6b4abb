package simulation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestNames has DNS answer nothing for five minutes. The operator itself asks for the name of an
// independent registry alone: it says that the name is not resolved, repairs meanwhile what does
// not need it, and all is well within a minute of its return.
func TestNames(t *testing.T) {
	lives(t, func(w *world) {
		w.mode = string(operatorv1alpha1.ModeIndependent)
		w.installed([]int64{3, 1}[w.random.IntN(2)])
		w.nameless = true
		says := func(kind string) bool {
			return strings.Contains(w.condition(kind).Message, "lookup "+insideName) && strings.Contains(w.condition(kind).Message, "DNS")
		}
		w.until("it is said that the name is not resolved", 3*time.Minute, func() bool {
			return w.condition("Available").Status == metav1.ConditionFalse && says("Available") && says("EndpointReady")
		})
		budget := id{schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}, key.namespace, "fleet-server"}
		w.deletes(budget)
		w.until("what was deleted is made again", time.Minute, func() bool { return w.host.objects[budget] != nil })
		w.pass(away)
		if !says("Available") || !says("EndpointReady") {
			w.fails("it is said no more: %s", w.conditions())
		}
		w.nameless = false
		w.until("all is well", time.Minute, w.ready)
		w.rests(10 * time.Minute)
	})
}

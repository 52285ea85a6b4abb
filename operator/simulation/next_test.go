package simulation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestNextLost deletes the Secret of a next CA of the servers that was published: the registry
// stays ready, and says so; another generation takes its place when a person asks for it, and is
// alone once clients need the first no more.
func TestNextLost(t *testing.T) {
	lives(t, func(w *world) {
		w.mode = string(operatorv1alpha1.ModeIndependent)
		w.installed(1)
		rotate := func(serving, drop int32) {
			w.asks("another CA of the servers", func(r *operatorv1alpha1.ClusterRegistry) {
				r.Spec.TLS.Rotation.Serving, r.Spec.TLS.Rotation.Drop.Serving = serving, drop
			})
		}
		given := func(count int) func() bool {
			return func() bool {
				endpoint := w.registry().Status.Endpoint
				return w.ready() && endpoint != nil && strings.Count(string(endpoint.CABundle), "BEGIN CERTIFICATE") == count
			}
		}
		rotate(2, 0)
		w.until("clients are given both", 20*time.Minute, given(2))
		w.deletes(id{secretKind, key.namespace, key.name + "-serving-ca-2"})
		w.pass(away)
		if c := w.condition("CertificatesReady"); c.Status != metav1.ConditionTrue || c.Reason != operatorv1alpha1.ReasonRotationPending || !given(2)() {
			w.fails("it does not wait for a person: %s", w.conditions())
		}
		rotate(3, 0)
		w.until("clients are given another one, too", 20*time.Minute, given(3))
		rotate(3, 1)
		w.until("clients are given that alone", 20*time.Minute, given(1))
		w.rests(20 * time.Minute)
	})
}

// TestNextReplaced has a next CA of the servers get another key while the host cluster is given
// it: the rotation needs no person.
func TestNextReplaced(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(1)
		w.asks("another CA of the servers", func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.TLS.Rotation.Serving = 2 })
		w.until("it is published", 20*time.Minute, func() bool { return strings.Contains(w.phase(), "Trust") })
		w.deletes(id{secretKind, key.namespace, key.name + "-serving-ca-2"})
		w.until("the rotation is complete", 20*time.Minute, func() bool { return w.ready() && rotated("-serving-ca")(w) })
		w.rests(20 * time.Minute)
	})
}

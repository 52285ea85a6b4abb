package simulation

import (
	"testing"
	"time"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// TestInstall installs a registry, with an operator that is killed at any of its writes, whose
// watches are late and of whose requests some get lost.
func TestInstall(t *testing.T) {
	lives(t, func(w *world) {
		w.faults = rough
		w.begins([]int64{3, 1}[w.random.IntN(2)])
		w.pass(2 * time.Minute)
		w.rests(10 * time.Minute)
	})
}

// TestOneSeedIsOneLife expects that a seed decides on everything that happens.
func TestOneSeedIsOneLife(t *testing.T) {
	var first []string
	for range 2 {
		live(t, 7, func(w *world) {
			w.begins(3)
			w.faults = rough
			w.pass(time.Minute)
			if first == nil {
				first = w.trace
			}
			for i := range min(len(first), len(w.trace)) {
				if first[i] != w.trace[i] {
					t.Fatalf("at %d: %q, and then %q", i, first[i], w.trace[i])
				}
			}
			if len(first) != len(w.trace) || len(first) < 50 {
				t.Errorf("%d lines, and then %d", len(first), len(w.trace))
			}
		})
	}
}

// members has a person ask for so many.
func (w *world) members(replicas int32) {
	w.asks("other members", func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Etcd.Replicas = replicas })
}

// TestScale has etcd grow and shrink, while the operator is killed at any write.
func TestScale(t *testing.T) {
	lives(t, func(w *world) {
		w.installed(1)
		for _, replicas := range []int32{3, 1} {
			w.faults = rough
			w.members(replicas)
			w.pass(2 * time.Minute)
			w.faults = faults{}
			w.until("etcd has the members that are asked for", 20*time.Minute, func() bool {
				members, serving := w.number()
				return w.ready() && members == int(replicas) && serving == members
			})
		}
		w.rests(10 * time.Minute)
	})
}

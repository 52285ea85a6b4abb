// Package history keeps the history in a registry's status: each installation and
// upgrade that began, newest first, and how it ended.
package history

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// limit is how many transitions a status keeps.
const limit = 16

// Last returns the newest transition, an empty one when there is none.
func Last(registry *operatorv1alpha1.ClusterRegistry) operatorv1alpha1.Transition {
	if len(registry.Status.History) == 0 {
		return operatorv1alpha1.Transition{}
	}
	return registry.Status.History[0]
}

// Installed reports whether the registry was complete once: any transition has reached
// its version.
func Installed(registry *operatorv1alpha1.ClusterRegistry) bool {
	return completed(registry.Status.History)
}

func completed(history []operatorv1alpha1.Transition) bool {
	for _, transition := range history {
		if transition.State == operatorv1alpha1.TransitionCompleted {
			return true
		}
	}
	return false
}

// Install begins the entry of the installation of a release, and reports whether it has: not where
// that has begun already, or the registry was complete once. One of another release is abandoned.
func Install(registry *operatorv1alpha1.ClusterRegistry, release string, now time.Time) bool {
	last := Last(registry)
	if Installed(registry) || last.Version == release {
		return false
	}
	if last.State == operatorv1alpha1.TransitionProgressing {
		Complete(registry, operatorv1alpha1.TransitionAbandoned, "", now)
	}
	Begin(registry, release, now)
	return true
}

// Begin adds an installation or upgrade to a release. The oldest transitions leave, but
// never the last that was completed.
func Begin(registry *operatorv1alpha1.ClusterRegistry, release string, now time.Time) {
	transition := operatorv1alpha1.Transition{Version: release, State: operatorv1alpha1.TransitionProgressing, StartTime: metav1.NewTime(now), Generation: registry.Generation}
	if registry.Spec.Etcd.External != nil && Installed(registry) {
		transition.Message = "etcd is external: there is no snapshot of it, and its version is not changed"
	}
	history := append([]operatorv1alpha1.Transition{transition}, registry.Status.History...)
	for i := len(history) - 1; len(history) > limit; i-- {
		if history[i].State != operatorv1alpha1.TransitionCompleted || completed(history[:i]) {
			history = append(history[:i], history[i+1:]...)
		}
	}
	registry.Status.History = history
}

// Note adds to the newest transition, which must exist, what there is to know of it.
func Note(registry *operatorv1alpha1.ClusterRegistry, message string) {
	registry.Status.History[0].Message = message
}

// Complete ends the newest transition, which must exist. An empty message leaves the
// one that it has.
func Complete(registry *operatorv1alpha1.ClusterRegistry, state operatorv1alpha1.TransitionState, message string, now time.Time) {
	last, end := &registry.Status.History[0], metav1.NewTime(now)
	last.State, last.CompletionTime, last.Generation = state, &end, registry.Generation
	if message != "" {
		last.Message = message
	}
}

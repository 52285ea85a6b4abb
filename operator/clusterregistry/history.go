package clusterregistry

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
	"github.com/clusterregistry/operator/operator/pass"
)

// advanceHistory begins the installation's entry, and completes it when all that clients
// need is ready for the first time: what acts on the content of the registry may follow.
func (s *scope) advanceHistory(conditions []metav1.Condition) {
	if s.Registry.Status.Operation != nil || s.Rendered == nil {
		return
	}
	last := history.Last(s.Registry)
	if !s.Installed() && last.Version != s.Release.Version {
		if last.State == operatorv1alpha1.TransitionProgressing {
			history.Complete(s.Registry, operatorv1alpha1.TransitionAbandoned, "", s.Now)
		}
		history.Begin(s.Registry, s.Release.Version, s.Now)
		s.tellInherited()
		last = history.Last(s.Registry)
	}
	if last.State == operatorv1alpha1.TransitionProgressing && s.served(conditions) {
		history.Complete(s.Registry, operatorv1alpha1.TransitionCompleted, "", s.Now)
	}
}

// tellInherited says of an installation, in its entry and once in an event, that the registry
// begins with data: who created it may expect an empty one.
func (s *scope) tellInherited() {
	since := s.Identity.Inherited()
	if since.IsZero() {
		return
	}
	what := fmt.Sprintf("the registry begins with the clusters of an earlier ClusterRegistry of this name, whose etcd of %s was kept", since.UTC().Format(time.RFC3339))
	history.Note(s.Registry, what)
	s.Event(corev1.EventTypeNormal, "DataTakenOver", operatorv1alpha1.ConditionEtcdReady, "%s. To begin without them, delete it with deletionPolicy Delete, which deletes that data for good, and create it again", what)
}

// served reports whether the registry is ready, whatever its controller does.
func (s *scope) served(conditions []metav1.Condition) bool {
	var needed []metav1.Condition
	for _, kind := range pass.Parts(s.Registry.Spec.Mode) {
		if condition := meta.FindStatusCondition(conditions, kind); condition != nil {
			needed = append(needed, *condition)
		}
	}
	return s.ready(needed).Status == metav1.ConditionTrue
}

package identity

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/history"
)

// inherited returns since when there is an etcd that an earlier registry of this name has left,
// zero where this registry has made its own. The record tells, which is older than this registry
// then: with it the registry takes over the data that it is about.
func (s *Store) inherited() time.Time {
	if s.Record == nil || !s.made.Before(s.objects.Registry.CreationTimestamp.Time) {
		return time.Time{}
	}
	return s.made
}

// TellInherited says of an installation that has begun, in its entry and once in an event, that the
// registry begins with data: who created it may expect an empty one.
func (s *Store) TellInherited() {
	since := s.inherited()
	if since.IsZero() {
		return
	}
	what := fmt.Sprintf("the registry begins with the clusters of an earlier ClusterRegistry of this name, whose etcd of %s was kept", since.UTC().Format(time.RFC3339))
	history.Note(s.objects.Registry, what)
	s.objects.Event(corev1.EventTypeNormal, "DataTakenOver", operatorv1alpha1.ConditionEtcdReady, "%s. To begin without them, delete it with deletionPolicy Delete, which deletes that data for good, and create it again", what)
}

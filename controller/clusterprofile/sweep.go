package clusterprofile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// settle is how long a profile has been due before it is deleted: all that become due
	// at once are seen together, and a cluster that is deleted and made again keeps its own.
	settle = 10 * time.Second
	// many is how many profiles are never deleted at once if they are more than half.
	many = 3
)

// condemn has a profile deleted, unless its cluster comes back.
func (s *session) condemn(name string) {
	if _, is := s.due[name]; !is {
		s.due[name] = s.Clock.Now()
		s.queue.AddAfter(sweep, settle+time.Second)
	}
}

// sweep deletes the profiles that have been due for a while, unless they are too many: a
// registry that was emptied, or restored, or hides its clusters from this controller,
// answers like one whose clusters are all gone. A person then decides.
func (s *session) sweep(ctx context.Context) {
	s.kept, s.total, s.undeleted = nil, 0, map[string]error{}
	if len(s.due) == 0 || s.Unwatched != nil && s.Unwatched() != nil {
		return
	}
	var due []*profile
	for _, object := range s.informer.GetStore().List() {
		have, err := decode(object.(*unstructured.Unstructured))
		if err != nil || !s.ours(have) || have.DeletionTimestamp != nil {
			continue
		}
		s.total++
		if _, is := s.due[have.Name]; is && s.selected(have.Name) == nil {
			due = append(due, have)
		}
	}
	if len(due) >= many && 2*len(due) > s.total {
		for _, p := range due {
			s.kept = append(s.kept, p.Name)
		}
		slices.Sort(s.kept)
		return
	}
	for _, p := range due {
		if s.Clock.Since(s.due[p.Name]) < settle {
			s.queue.AddAfter(sweep, settle)
			continue
		}
		if err := s.remove(ctx, p); err != nil {
			if !apierrors.IsConflict(err) {
				s.undeleted[p.Name] = err
			}
			s.suspect()
		}
	}
}

// remove deletes a profile, if the registry says again that it has no such cluster, and
// the profile is still the one that was seen.
func (s *session) remove(ctx context.Context, have *profile) error {
	cluster, err := s.Clusters.Get(ctx, have.Name, metav1.GetOptions{})
	switch {
	case err == nil && s.Selector.Matches(labels.Set(cluster.Labels)):
		delete(s.due, have.Name) // the informer is about to show it
		return nil
	// A server that has no such API answers 404, too.
	case err != nil && (!apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)):
		return fmt.Errorf("ask the registry whether the cluster is gone: %w", err)
	}
	return s.erase(ctx, have)
}

// erase deletes a profile that is still the one that was seen. It counts as a write, and the
// next one of the name waits as long as after any other, unless finalizers keep the profile.
func (s *session) erase(ctx context.Context, have *profile) error {
	if len(have.Finalizers) == 0 {
		s.writes[have.Name] = writes{stamp: written(have.ManagedFields), last: s.Clock.Now()}
	}
	err := s.profiles.Delete(ctx, have.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion}})
	s.Metrics.wrote(s.Namespace, err)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete it: %w", err)
	}
	delete(s.due, have.Name)
	return nil
}

// keptMessage says which profiles are kept although their clusters are gone.
func (s *session) keptMessage() string {
	const command = "kubectl delete clusterprofiles.multicluster.x-k8s.io --namespace="
	remedy := command + s.Namespace + " " + strings.Join(s.kept, " ")
	if len(s.kept) > 2*maxListed {
		remedy = fmt.Sprintf("the following deletes all of this registry, and those of clusters that are selected are made again: %s%s --selector=%s=%s", command, s.Namespace, contract.NamespaceLabel(s.Registry), s.Source.Namespace)
	}
	return fmt.Sprintf("In namespace %q, the clusters of %d of %d ClusterProfiles (%s) are no longer in the registry, or not selected: as many are not deleted at once, since a registry that was emptied or a mistyped selector looks the same. If that is right, delete them: %s", s.Namespace, len(s.kept), s.total, list(s.kept), remedy)
}

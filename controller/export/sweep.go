package export

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/internal/unregistered"
)

const (
	// settle is how long an object has been due before it is deleted: all that become due
	// at once are seen together, and a cluster that is deleted and made again keeps its own.
	settle = 10 * time.Second
	// many is how many objects are never deleted at once if they are more than half.
	many = 3
)

// condemn has the object of a cluster deleted, unless the cluster comes back.
func (s *session) condemn(name string) {
	if _, is := s.due[name]; !is {
		s.due[name] = s.Clock.Now()
		s.queue.AddAfter(sweep, settle+time.Second)
	}
}

// sweep deletes the objects that have been due for a while, unless they are too many: a
// registry that was emptied, or restored, or hides its clusters from this controller,
// answers like one whose clusters are all gone. A person then decides.
func (s *session) sweep(ctx context.Context) {
	s.unretired = s.retire(ctx)
	s.kept, s.total, s.undeleted = nil, 0, map[string]error{}
	if len(s.due) == 0 || s.Unwatched != nil && s.Unwatched() != nil {
		return
	}
	var due []string
	objects := map[string]*unstructured.Unstructured{}
	for _, object := range s.informer.GetStore().List() {
		have := object.(*unstructured.Unstructured)
		name, is := s.clusterOf(keyOf(have))
		if ours, _ := s.Format.Ours(have); !is || !ours || have.GetDeletionTimestamp() != nil {
			continue
		}
		s.total++
		if _, is := s.due[name]; is && !s.wanted(s.selected(name), have) {
			due, objects[name] = append(due, name), have
		}
	}
	if len(due) >= many && 2*len(due) > s.total {
		slices.Sort(due)
		s.kept = due
		return
	}
	for _, name := range due {
		if s.Clock.Since(s.due[name]) < settle {
			s.queue.AddAfter(sweep, settle)
			continue
		}
		if err := s.remove(ctx, name, objects[name]); err != nil {
			if !apierrors.IsConflict(err) {
				s.undeleted[name] = err
			}
			s.suspect()
		}
	}
}

// wanted reports whether a cluster is to have an object, or may be.
func (s *session) wanted(cluster *v1beta1.Cluster, have *unstructured.Unstructured) bool {
	if cluster == nil || !s.selects(cluster) {
		return false
	}
	_, why := s.want(cluster, have)
	return why == nil || why.Then != format.Sweep
}

// remove deletes an object, if the registry says again that it has no such cluster, or that
// nothing of it is to be published, and the object is still the one that was seen.
func (s *session) remove(ctx context.Context, name string, have *unstructured.Unstructured) error {
	cluster, err := s.Clusters.Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && s.wanted(cluster, have):
		delete(s.due, name) // the informer is about to show it
		return nil
	case err != nil && (!apierrors.IsNotFound(err) || unregistered.Is(err)):
		return fmt.Errorf("ask the registry whether the cluster is gone: %w", err)
	}
	return s.erase(ctx, name, have)
}

// erase deletes an object that is still the one that was seen. It counts as a write, and the
// next one of the name waits as long as after any other, unless finalizers keep it.
func (s *session) erase(ctx context.Context, name string, have *unstructured.Unstructured) error {
	if len(have.GetFinalizers()) == 0 {
		s.writes[name] = writes{stamp: format.Written(have.GetManagedFields()), last: s.Clock.Now()}
	}
	uid, version := have.GetUID(), have.GetResourceVersion()
	err := s.objects.Delete(ctx, have.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	s.Metrics.wrote(s.Target, err)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete it: %w", err)
	}
	delete(s.due, name)
	return nil
}

// keptMessage says which objects are kept although their clusters are gone.
func (s *session) keptMessage() string {
	command := "kubectl delete " + s.kind.Resource.GroupResource().String() + " --namespace=" + s.Namespace
	remedy := command + " " + strings.Join(s.names(s.kept), " ")
	if len(s.kept) > 2*format.MaxListed {
		remedy = fmt.Sprintf("the following deletes all of this registry, and those of clusters that are selected are made again: %s --selector=%s", command, s.kind.Selector)
	}
	return fmt.Sprintf("In namespace %q, the clusters of %d of %d %s (%s) are no longer in the registry, or not selected: as many are not deleted at once, since a registry that was emptied or a mistyped selector or selection looks the same. If that is right, delete them: %s", s.Namespace, len(s.kept), s.total, s.kind.Words, s.list(s.kept), remedy)
}

package clusterprofile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/internal/contract"
)

const (
	// sweep is the key of the queue that stands for all profiles: no cluster is named so.
	sweep = ""
	// persistent is how many attempts in a row must fail before that is said.
	persistent = 3
	// patience is how long a profile may be terminating before that is said.
	patience = time.Minute
)

// session follows the profiles of a namespace while it is open. But for the channels, all
// of it is the worker's alone.
type session struct {
	*publisher
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[string]
	// doubt is signaled when a request fails as if the namespace was closed.
	doubt   chan struct{}
	unread  unread
	passing atomic.Pointer[verdict]

	// shown are the profiles of selected clusters, with whether they have access providers;
	// held are the profiles of others in the place of one of this registry, with whose
	// they are; ending those that are terminating; failing those that could not be written;
	// cut those of selected clusters that have none, since another cluster answers.
	shown   map[string]bool
	held    map[string]string
	ending  map[string]ending
	failing map[string]error
	cut     map[string]bool
	writes  map[string]writes
	// due are the profiles to be deleted, since when; kept those of them that are too many,
	// of total that there are; undeleted those that the last sweep could not delete.
	due       map[string]time.Time
	kept      []string
	total     int
	undeleted map[string]error
}

// ending is a profile that waits for finalizers.
type ending struct {
	since      time.Time
	finalizers []string
}

// suspect has the namespace looked at soon.
func (s *session) suspect() {
	select {
	case s.doubt <- struct{}{}:
	default:
	}
}

// work goes through the queue until it is shut down.
func (s *session) work(ctx context.Context) {
	for {
		name, shutdown := s.queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			s.one(ctx, name)
		}
		s.queue.Done(name)
	}
}

// one looks at one profile, or at those that are due.
func (s *session) one(ctx context.Context, name string) {
	if name == sweep {
		s.sweep(ctx)
	} else {
		s.outcome(name, s.look(ctx, name))
	}
	// A burst is not summed up after each of its profiles.
	if ctx.Err() == nil && (name == sweep || s.queue.Len() == 0) {
		s.count()
		s.report(s.Namespace, s.judge())
	}
}

// outcome remembers how a profile went.
func (s *session) outcome(name string, err error) {
	if errors.Is(err, errEarly) {
		return // whether the last write failed still counts
	}
	if err == nil {
		delete(s.failing, name)
		s.queue.Forget(name)
		return
	}
	s.failing[name] = err
	s.queue.AddRateLimited(name)
	if !apierrors.IsConflict(err) {
		s.suspect()
	}
}

// selected returns a cluster that has a profile in this namespace; nil when there is none.
func (s *session) selected(name string) *v1beta1.Cluster {
	cluster, err := s.lister.Get(name)
	if err != nil || !s.Selector.Matches(labels.Set(cluster.Labels)) {
		return nil
	}
	return cluster
}

// stored returns a profile as it is known; nil when there is none.
func (s *session) stored(name string) (*profile, error) {
	object, exists, err := s.informer.GetStore().GetByKey(s.Namespace + "/" + name)
	if err != nil || !exists {
		return nil, err
	}
	return decode(object.(*unstructured.Unstructured))
}

// look brings the profile of a cluster up to date:
//  1. there is none: it is made, if the cluster is selected and no other one answers
//  2. it is another's: it is left alone, and held
//  3. it is terminating: it is made again once it is gone
//  4. its cluster is gone: it is due
//  5. another cluster answers: it is deleted at once
//  6. it differs: it is written, as soon as it may be
func (s *session) look(ctx context.Context, name string) error {
	cluster := s.selected(name)
	have, err := s.stored(name)
	delete(s.shown, name)
	delete(s.held, name)
	delete(s.ending, name)
	delete(s.cut, name)
	if err != nil {
		return err
	}
	if cluster != nil && mistaken(cluster) {
		s.cut[name] = true
	}
	switch {
	case have == nil && cluster == nil:
		delete(s.due, name)
		delete(s.writes, name)
		return nil
	case have == nil:
		delete(s.due, name)
		if s.cut[name] {
			return nil
		}
		return s.create(ctx, cluster)
	case !s.ours(have):
		delete(s.due, name)
		if cluster != nil {
			s.held[name] = have.Spec.ClusterManager.Name
		}
		return nil
	case have.DeletionTimestamp != nil:
		delete(s.due, name)
		s.ending[name] = ending{since: have.DeletionTimestamp.Time, finalizers: have.Finalizers}
		if wait := patience - s.Clock.Since(have.DeletionTimestamp.Time); wait > 0 {
			s.queue.AddAfter(name, wait+time.Second)
		}
		if s.cut[name] { // whoever holds it back finds no providers meanwhile
			return s.update(ctx, s.of(cluster, s.Target, proofOf(s.verifier.proof(cluster), have)), have)
		}
		return nil
	case cluster == nil:
		s.condemn(name)
		return nil
	case s.cut[name]:
		delete(s.due, name)
		return s.erase(ctx, have)
	}
	delete(s.due, name)
	s.shown[name] = len(have.Status.AccessProviders) > 0
	return s.update(ctx, s.of(cluster, s.Target, proofOf(s.verifier.proof(cluster), have)), have)
}

// judge sums up how the namespace is. Single profiles that wait for a person or for someone's
// finalizer are said, and the function still runs: whoever may write a profile there, or delete
// a cluster of the registry, can bring that about.
func (s *session) judge() verdict {
	v := verdict{state: contract.FunctionRunning}
	var messages []string
	add := func(state contract.FunctionState, message string, arguments ...any) {
		messages = append(messages, fmt.Sprintf(message, arguments...))
		if ranks[state] > ranks[v.state] {
			v.state = state
		}
	}
	if passing := s.passing.Load(); passing != nil {
		add(passing.state, "%s", passing.message)
	}
	if err := s.unread.lasting(s.Clock.Now()); err != nil {
		add(contract.FunctionFailing, "%s", unreadable(s.Namespace, err))
	}
	if len(s.kept) > 0 {
		add(contract.FunctionRunning, "%s", s.keptMessage())
	}
	if names := slices.Sorted(maps.Keys(s.held)); len(names) > 0 {
		add(contract.FunctionRunning, "In namespace %q, ClusterProfiles that are not of this registry (the first has the cluster manager %q; those of this registry have %q and the label %s=%s) have the names of its clusters, and are left alone: %s. Delete them, or select other clusters.", s.Namespace, s.held[names[0]], s.Manager(), contract.NamespaceLabel(s.Registry), s.Source.Namespace, list(names))
	}
	if names := slices.Sorted(maps.Keys(s.cut)); len(names) > 0 {
		add(contract.FunctionRunning, "Namespace %q has no ClusterProfiles of clusters at whose endpoints other clusters answer (IdentityVerified is False): %s. Correct the endpoints of their entries; of a cluster that was made again, delete the entry and join it.", s.Namespace, list(names))
	}
	if names := slices.Sorted(maps.Keys(s.undeleted)); len(names) > 0 {
		add(contract.FunctionFailing, "In namespace %q, ClusterProfiles of clusters that are gone can't be deleted: %s. The error of the first is: %v.", s.Namespace, list(names), s.undeleted[names[0]])
	}
	var names []string
	for name := range s.failing {
		if s.queue.NumRequeues(name) >= persistent {
			names = append(names, name)
		}
	}
	if slices.Sort(names); len(names) > 0 {
		add(s.unwritten(names), "In namespace %q, ClusterProfiles can't be written: %s. The error of the first is: %v%s.", s.Namespace, list(names), s.failing[names[0]], hint(s.failing[names[0]]))
	}
	names = nil
	for name, is := range s.ending {
		if s.Clock.Since(is.since) >= patience {
			names = append(names, name)
		}
	}
	if slices.Sort(names); len(names) > 0 {
		add(contract.FunctionRunning, "In namespace %q, ClusterProfiles that were deleted wait for their finalizers, the first for %s: %s. They are made again once they are gone, if their clusters are selected.", s.Namespace, strings.Join(s.ending[names[0]].finalizers, ", "), list(names))
	}
	v.message = strings.Join(messages, "\n")
	return v
}

// unwritten is how the function is when some profiles can't be written: it runs where the
// host cluster takes those of other clusters, and finds the content of these not valid.
func (s *session) unwritten(names []string) contract.FunctionState {
	all, err := s.lister.List(s.Selector)
	if err != nil || len(names) >= len(all) || slices.ContainsFunc(names, func(name string) bool { return !apierrors.IsInvalid(s.failing[name]) }) {
		return contract.FunctionFailing
	}
	return contract.FunctionRunning
}

// hint says more of an error that does not name its cause.
func hint(err error) string {
	if strings.Contains(err.Error(), "field not declared in schema") {
		return "; the installed CRD is of another release: install " + crd
	}
	return ""
}

package export

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/controller/export/format"
)

const (
	// sweep is the key of the queue that stands for all objects: no cluster is named so.
	sweep = ""
	// persistent is how many attempts in a row must fail before that is said.
	persistent = 3
	// patience is how long an object may be terminating before that is said.
	patience = time.Minute
)

// session follows the objects of a namespace while it is open. But for the channels, and the
// informers, all of it is the worker's alone.
type session struct {
	*publisher
	informer cache.SharedIndexInformer
	// choosing has the ClusterSelection of the export; nil for none, and where no one acts on it.
	choosing cache.SharedIndexInformer
	unchosen unread
	queue    workqueue.TypedRateLimitingInterface[string]
	// doubt is signaled when a request fails as if the namespace was closed.
	doubt   chan struct{}
	unread  unread
	passing atomic.Pointer[verdict]

	// All of these are by the name of the cluster. shown are the objects of selected clusters,
	// with whether they lead there; held are the objects of others in the place of one of this
	// registry, with how they differ; ending those that are terminating; failing those that
	// could not be written; cut are the selected clusters that must not have one, and without
	// those of which nothing is published, but for those where another cluster answers.
	shown   map[string]bool
	held    map[string]string
	ending  map[string]ending
	failing map[string]error
	cut     map[string]bool
	without map[string]format.Withheld
	// claims are the places that objects are about to lead to, by the place.
	claims map[string]claim
	writes map[string]writes
	// due are the objects to be deleted, since when; kept those of them that are too many,
	// of total that there are; undeleted those that the last sweep could not delete.
	due       map[string]time.Time
	kept      []string
	total     int
	undeleted map[string]error
	// retired says that nothing is left of formats of before, and unretired why it may be.
	retired   bool
	unretired error
}

// ending is an object that waits for finalizers.
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

// one looks at one object, or at those that are due.
func (s *session) one(ctx context.Context, name string) {
	if name == sweep {
		s.sweep(ctx)
	} else {
		s.outcome(name, s.look(ctx, name))
	}
	// A burst is not summed up after each of its objects.
	if ctx.Err() == nil && (name == sweep || s.queue.Len() == 0) {
		s.count()
		s.report(s.Target, s.judge())
	}
}

// outcome remembers how an object went.
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

// selected returns a cluster that has an object in this namespace; nil when there is none.
func (s *session) selected(name string) *v1beta1.Cluster {
	cluster, err := s.lister.Get(name)
	if err != nil || !s.selects(cluster) {
		return nil
	}
	return cluster
}

// stored returns the object of a cluster as it is known; nil when there is none.
func (s *session) stored(name string) (*unstructured.Unstructured, error) {
	object, exists, err := s.informer.GetStore().GetByKey(s.Namespace + "/" + s.kind.Prefix + name)
	if err != nil || !exists {
		return nil, err
	}
	return object.(*unstructured.Unstructured), nil
}

// want returns what the object of a cluster is to be, and why there is to be none.
func (s *session) want(cluster *v1beta1.Cluster, have *unstructured.Unstructured) (format.Object, *format.Withheld) {
	if s.rests(cluster.Name, have) && !format.Mistaken(cluster) {
		return nil, &format.Withheld{Then: format.Wait}
	}
	in := s.Target.Target
	in.Owner = s.owner.Load()
	in.Occupant = func(place string) string { return s.occupant(cluster.Name, place) }
	want, why := s.Format.Want(cluster, in, s.verifier.Known(cluster), have)
	if _, known := s.picks(cluster.Name); !known && why != nil && why.Reason == format.ReasonOccupied {
		// Which of two objects that lead to one place is chosen is not known.
		return nil, &format.Withheld{Then: format.Wait}
	}
	return want, why
}

// look brings the object of a cluster up to date:
//  1. there is none: it is made, if the cluster is selected and nothing is withheld
//  2. it is another's: it is left alone, and held
//  3. it is terminating: it is made again once it is gone
//  4. its cluster is gone, or has nothing to publish any more: it is due
//  5. another cluster answers: it is deleted at once
//  6. it differs: it is written, as soon as it may be
func (s *session) look(ctx context.Context, name string) error {
	cluster := s.selected(name)
	have, err := s.stored(name)
	s.forget(name)
	if err != nil {
		return err
	}
	var want format.Object
	var why *format.Withheld
	if cluster != nil {
		want, why = s.want(cluster, have)
	}
	s.note(name, why)
	switch {
	case have == nil && cluster == nil:
		delete(s.due, name)
		delete(s.writes, name)
		return nil
	case have == nil:
		delete(s.due, name)
		if why != nil {
			return nil // it comes back once more is known
		}
		return s.create(ctx, name, want)
	}
	switch ours, differs := s.Format.Ours(have); {
	case !ours:
		delete(s.due, name)
		if cluster != nil {
			s.held[name] = differs
		}
		return nil
	case have.GetDeletionTimestamp() != nil:
		return s.wait(ctx, name, want, have)
	case cluster == nil || why != nil && why.Then == format.Sweep:
		s.condemn(name)
		return nil
	}
	delete(s.due, name)
	switch {
	case s.cut[name]:
		return s.erase(ctx, name, have)
	case why != nil && why.Then != format.Keep && why.Message != "":
		return errors.New(why.Message)
	}
	s.shown[name] = s.Format.Leads(have) != ""
	if why != nil {
		return nil
	}
	return s.update(ctx, name, want, have)
}

// forget drops what is known of the object of a cluster, but for whether it is due.
func (s *session) forget(name string) {
	delete(s.shown, name)
	delete(s.held, name)
	delete(s.ending, name)
	delete(s.cut, name)
	delete(s.without, name)
}

// note remembers why a cluster is to have no object.
func (s *session) note(name string, why *format.Withheld) {
	switch {
	case why == nil || why.Then == format.Wait:
		return // of the second, it is said elsewhere
	case why.Then == format.Delete:
		s.cut[name] = true
		if why.Reason != format.ReasonMistaken {
			s.without[name] = *why
		}
	default:
		s.without[name] = *why
	}
	if why.Reason == format.ReasonOccupied {
		s.queue.AddAfter(name, patience) // the other one may be gone by then
	}
}

// wait remembers an object that is terminating. Whoever holds it back is led nowhere by it
// where nothing is to be published at once.
func (s *session) wait(ctx context.Context, name string, want format.Object, have *unstructured.Unstructured) error {
	delete(s.due, name)
	since := have.GetDeletionTimestamp().Time
	s.ending[name] = ending{since: since, finalizers: have.GetFinalizers()}
	if left := patience - s.Clock.Since(since); left > 0 {
		s.queue.AddAfter(name, left+time.Second)
	}
	if s.cut[name] {
		return s.update(ctx, name, want, have)
	}
	return nil
}

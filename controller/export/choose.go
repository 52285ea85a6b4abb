package export

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/controller/export/format"
	"github.com/clusterregistry/operator/controller/selection"
	"github.com/clusterregistry/operator/internal/contract"
)

// picks reports whether a cluster is one that the ClusterSelection of the export has chosen, and
// whether that is known. An export without one chooses all.
func (p *publisher) picks(name string) (is, known bool) {
	if p.Selection == "" {
		return true, true
	}
	chosen := p.chosen.Load()
	return chosen != nil && chosen.Has(name), chosen != nil
}

// selects reports whether a cluster is to have an object, if there is anything to publish of it.
// While it is not known what a ClusterSelection has chosen, these are the clusters that have one,
// and while not even that is known which the namespace may see, it takes none away.
func (s *session) selects(cluster *v1beta1.Cluster) bool {
	if !s.admits(cluster) && !s.unattended() {
		return false
	}
	if is, known := s.picks(cluster.Name); known {
		return is
	}
	have, err := s.stored(cluster.Name)
	if err != nil || have == nil {
		return false
	}
	ours, _ := s.Format.Ours(have)
	return ours
}

// rests reports whether the object of a cluster stays as it is, whatever its entry says: while no
// one acts on the selections of the namespace, and, while it is not known what is chosen, unless this
// program has written the object. Whoever else makes one with the labels of the registry has chosen
// nothing by that.
func (s *session) rests(name string, have *unstructured.Unstructured) bool {
	_, known := s.picks(name)
	return s.unattended() || !known && (have == nil || format.Owned(have.GetManagedFields(), "") == nil)
}

// asks reports whether the endpoint of a cluster is to be asked, if there is anything to publish of
// it. While it is not known what is chosen, only those are whose objects follow their entries.
func (p *publisher) asks(cluster *v1beta1.Cluster) bool {
	if !p.admits(cluster) {
		return false
	}
	if is, known := p.picks(cluster.Name); known {
		return is
	}
	p.mu.Lock()
	s := p.session
	p.mu.Unlock()
	if s == nil || !s.selects(cluster) {
		return false // the session has those asked that have an object, once it begins
	}
	have, err := s.stored(cluster.Name)
	return err == nil && !s.rests(cluster.Name, have)
}

// newChoosing returns an informer of the ClusterSelection of the export, which has not begun; nil
// when there is none, or no one acts on it.
func (s *session) newChoosing() cache.SharedIndexInformer {
	if s.Selection == "" || s.unattended() {
		return nil
	}
	out := dynamicinformer.NewFilteredDynamicInformer(s.Config.Objects, selection.Resource, s.Namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", s.Selection).String()
	}).Informer()
	// It has neither been started nor given handlers: none of these fails.
	_ = out.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err)
		s.unchosen.note(s.Clock.Now(), err)
	})
	changed := func(any) { s.choose() }
	_, _ = out.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: changed})
	return out
}

// choose notes which clusters the ClusterSelection has chosen, and has all clusters looked at, and
// the endpoints of those asked that were not chosen before, when others are.
func (s *session) choose() {
	now, _ := s.decided()
	before := s.chosen.Swap(now)
	if (before == nil) == (now == nil) && (now == nil || now.Equal(*before)) {
		s.queue.Add(sweep) // what it waits for may be another thing
		return
	}
	s.queueAll()
	if now == nil {
		return
	}
	for name := range *now {
		if before == nil || !before.Has(name) {
			s.verifier.Queue.Add(name)
		}
	}
}

// decided returns the clusters that the ClusterSelection of the export has chosen. They are nil
// while that is not known: nothing new is published then and nothing is taken back, and the verdict
// says what it waits for.
func (s *session) decided() (*sets.Set[string], *verdict) {
	waits := func(state contract.FunctionState, fault, remedy string) (*sets.Set[string], *verdict) {
		return nil, &verdict{state: state, waiting: true, message: fmt.Sprintf("ClusterSelection %q of namespace %q %s: no new %s there, and none is taken back. %s", s.Selection, s.Namespace, fault, s.kind.Words, remedy)}
	}
	if s.choosing == nil {
		return waits(contract.FunctionRunning, "is not acted on", "Give the namespace an entry with a valid selector in spec.controllers.clusterSelections (--cluster-selections).")
	}
	object, exists, err := s.choosing.GetStore().GetByKey(s.Namespace + "/" + s.Selection)
	switch {
	case err != nil || !exists && !s.choosing.HasSynced():
		return waits(contract.FunctionStarting, "is being read", "This takes a moment.")
	case !exists || object.(*unstructured.Unstructured).GetDeletionTimestamp() != nil:
		return waits(contract.FunctionRunning, "does not exist", "Create it, or name another one in spec.controllers.exports.")
	}
	is := operatorv1alpha1.ClusterSelection{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.(*unstructured.Unstructured).Object, &is); err != nil {
		return waits(contract.FunctionRunning, fmt.Sprintf("is not valid (%v)", err), "Delete it, and install the CRD of this release.")
	}
	ready := meta.FindStatusCondition(is.Status.Conditions, operatorv1alpha1.SelectionConditionReady)
	switch of := is.Spec.RegistryRef; {
	case of.Name != s.Registry || string(of.Namespace) != s.Source.Namespace:
		return waits(contract.FunctionRunning, "is of another registry", fmt.Sprintf("Name one whose registryRef is %q in namespace %q.", s.Registry, s.Source.Namespace))
	case ready == nil || is.Status.ObservedGeneration != is.Generation || ready.ObservedGeneration != is.Generation:
		return waits(contract.FunctionRunning, "has no decisions for its present spec", "If it has none soon, the message of clusterSelections says why.")
	case ready.Status != metav1.ConditionTrue:
		return waits(contract.FunctionRunning, "is not Ready", "Its condition says what to do.")
	}
	chosen := sets.New[string]()
	for _, decision := range is.Status.Decisions {
		chosen.Insert(decision.ClusterName)
	}
	return &chosen, nil
}

// waits says what the export waits for before it is known what to publish, or why it may be
// something else by now; nil when it waits for nothing.
func (s *session) waits() *verdict {
	if s.Selection == "" {
		return nil
	}
	if err := s.unchosen.lasting(s.Clock.Now()); err != nil {
		return &verdict{state: contract.FunctionFailing, message: fmt.Sprintf("ClusterSelection %q of namespace %q can't be listed or watched, so that what it chooses is not followed: %v.", s.Selection, s.Namespace, err)}
	}
	if s.chosen.Load() != nil {
		return nil
	}
	_, waits := s.decided()
	return waits
}

package selection

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/controller/selection/decide"
)

// The reasons of the condition Ready.
const (
	reasonDecided   = "Decided"
	reasonInvalid   = "InvalidExpression"
	reasonExpensive = "TooExpensive"
	reasonMissing   = "ClustersMissing"
	reasonTooMany   = "TooManySelections"
	reasonBusy      = "Evaluating"
)

const (
	// pause is the time between two evaluations of expressions that cost too much.
	pause = 10 * time.Minute
	// memory is how many bytes may be kept, for all selections of all namespaces, of what
	// clusters are ordered by.
	memory = 128 << 20
)

// program is a selection as it was compiled.
type program struct {
	uid        types.UID
	generation int64
	evaluator  *decide.Evaluator
	invalid    error
	// until is when expressions that cost too much are evaluated again.
	until time.Time
	// kept is how many bytes of memory are accounted for it.
	kept int
}

// reconcile brings the decisions of a selection up to date:
//  1. one that is gone has no decisions: what was published of it is deleted
//  2. it is decided which clusters it selects
//  3. the status is written if that differs
//  4. the PlacementDecisions are made of the status, and the status says whether they are there
func (s *session) reconcile(ctx context.Context, name string) error {
	selection, err := s.stored(name)
	if err != nil {
		return err
	}
	admitted := s.admits(name)
	if selection == nil || selection.DeletionTimestamp != nil || !s.ours(selection) {
		s.forget(name)
		return s.prune(ctx, name, "", 0)
	}
	if !admitted && len(selection.Status.Decisions) == 0 && s.saidTooMany(selection) {
		return nil // there may be any number of these
	}
	if s.Unwatched() != nil {
		s.queue.AddAfter(name, recheck)
		return nil //nolint:nilerr // the function says so, of all selections
	}
	before := selection.Status.DeepCopy()
	next, err := s.decided(ctx, selection, admitted)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.ready[name] = meta.IsStatusConditionTrue(selection.Status.Conditions, operatorv1alpha1.SelectionConditionReady)
	s.mu.Unlock()
	if selection, err = s.write(ctx, before, selection); err != nil || selection == nil {
		return err
	}
	before = selection.Status.DeepCopy()
	again, err := s.publish(ctx, selection)
	if err != nil {
		return err
	}
	if _, err = s.write(ctx, before, selection); err != nil {
		return err
	}
	for _, wait := range []time.Duration{next, again} {
		if wait > 0 {
			s.queue.AddAfter(name, wait)
		}
	}
	return nil
}

// ours reports whether a selection is of this registry.
func (s *session) ours(selection *operatorv1alpha1.ClusterSelection) bool {
	return selection.Spec.RegistryRef.Name == s.Registry && string(selection.Spec.RegistryRef.Namespace) == s.Controller.Namespace
}

// saidTooMany reports whether the status has that a selection is one too many.
func (s *session) saidTooMany(selection *operatorv1alpha1.ClusterSelection) bool {
	ready := meta.FindStatusCondition(selection.Status.Conditions, operatorv1alpha1.SelectionConditionReady)
	return ready != nil && ready.Reason == reasonTooMany && ready.ObservedGeneration == selection.Generation
}

// drop drops the program of a selection.
func (s *session) drop(name string) {
	if p := s.programs[name]; p != nil {
		s.fleet.keep(p, 0)
		delete(s.programs, name)
	}
}

// forget drops what is known of a selection.
func (s *session) forget(name string) {
	s.drop(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ready, name)
}

// decided sets the status of a selection but for what is published, and returns when it is to
// be looked at again; zero when only a change is a reason.
func (s *session) decided(ctx context.Context, selection *operatorv1alpha1.ClusterSelection, admitted bool) (time.Duration, error) {
	now := s.Clock.Now()
	status := &selection.Status
	var names []string
	for _, is := range status.Decisions {
		names = append(names, is.ClusterName)
	}
	fleet := s.fleet.snapshot(s.Target, names)
	in := decide.Input{
		Spec: selection.Spec, Previous: status.Decisions, Edited: status.ObservedGeneration != selection.Generation, Now: now.UTC().Truncate(time.Second),
		Visible:    func(name string) *decide.View { return fleet.visible[name] },
		Registered: func(name string) bool { return fleet.registered[name] },
	}
	if status.DecisionTime != nil {
		in.Changed = status.DecisionTime.Time
	}
	decision := decide.Decision{Clusters: decide.Retain(in)}
	p := s.program(selection, admitted)
	var ready metav1.Condition
	switch {
	case !admitted:
		ready = unready(reasonTooMany, "The namespace has more than %d ClusterSelections of this registry, and the oldest are acted on. Delete others, or merge some.", most)
	case p.invalid != nil:
		ready = unready(reasonInvalid, "%v. Until then no other cluster is selected.", p.invalid)
	case p.until.After(now):
		ready = expensive()
		decision.Next = p.until
	default:
		var err error
		if ready, err = s.evaluate(ctx, p, in, fleet.seen, &decision); err != nil {
			return 0, err
		}
	}
	if status.DecisionTime == nil || !decide.SameClusters(status.Decisions, decision.Clusters) {
		status.DecisionTime = &metav1.Time{Time: in.Now}
	}
	status.Decisions, status.Selected = decision.Clusters, int32(len(decision.Clusters))
	if ready.Reason == reasonBusy {
		// An edit that is not decided on yet still is one, and what is said of the spec stays.
		if said := meta.FindStatusCondition(status.Conditions, operatorv1alpha1.SelectionConditionReady); said == nil || said.ObservedGeneration != selection.Generation {
			s.set(selection, operatorv1alpha1.SelectionConditionReady, ready)
		}
		return time.Second, nil
	}
	status.ObservedGeneration = selection.Generation
	s.set(selection, operatorv1alpha1.SelectionConditionReady, ready)
	if decision.Next.IsZero() {
		return 0, nil
	}
	return max(decision.Next.Sub(now), 0) + time.Second, nil
}

// program returns a selection as it is compiled; an empty one for one that is not acted on.
func (s *session) program(selection *operatorv1alpha1.ClusterSelection, admitted bool) *program {
	if !admitted {
		s.drop(selection.Name)
		return &program{}
	}
	if p := s.programs[selection.Name]; p != nil && p.uid == selection.UID && p.generation == selection.Generation {
		return p
	}
	s.drop(selection.Name)
	p := &program{uid: selection.UID, generation: selection.Generation}
	compiled, err := decide.Compile(selection.Spec)
	p.evaluator, p.invalid = &decide.Evaluator{Program: compiled}, err
	s.programs[selection.Name] = p
	return p
}

// evaluate decides by the expressions, and returns the condition Ready. The error is that of
// ctx.
func (s *session) evaluate(ctx context.Context, p *program, in decide.Input, seen []*decide.View, out *decide.Decision) (metav1.Condition, error) {
	s.fleet.evaluating.Lock()
	defer s.fleet.evaluating.Unlock()
	limited, cancel := context.WithTimeout(ctx, s.fleet.turn)
	defer cancel()
	evaluated, err := p.evaluator.Run(limited, seen)
	if s.fleet.keep(p, p.evaluator.Size()) > memory {
		s.fleet.keep(p, 0)
		p.evaluator = &decide.Evaluator{Program: p.evaluator.Program}
		err = decide.ErrBudget
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return unready(reasonBusy, "The expressions are being evaluated for all clusters. Until then no other cluster is selected."), nil
	case errors.Is(err, decide.ErrBudget):
		p.until = s.Clock.Now().Add(pause)
		out.Next = p.until
		return expensive(), nil
	case err != nil:
		return metav1.Condition{}, err
	}
	in.Candidates = evaluated.Candidates
	*out = p.evaluator.Decide(in)
	if out.Missing > 0 {
		return unready(reasonMissing, "The registry no longer has %d of the %d selected clusters: as many do not go at once, since a registry that was emptied or restored looks the same. If that is right, change the spec, such as stabilizationSeconds: a change takes effect at once.", out.Missing, len(out.Clusters)), nil
	}
	message := "The decisions are up to date."
	if evaluated.Failing > 0 {
		message = fmt.Sprintf("The decisions are up to date. For some clusters an expression has no value, such as %q (%s). Where that is not intended, ask first whether a key exists, as in cluster.labels[?'key'].orValue('').", evaluated.Example, evaluated.Failure)
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonDecided, Message: message}, nil
}

func unready(reason, message string, arguments ...any) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(message, arguments...)}
}

func expensive() metav1.Condition {
	return unready(reasonExpensive, "The expressions cost more for all clusters than CEL in Kubernetes may (%d units), or what the selections of all namespaces are ordered by takes more memory than %d MiB: write them with fewer loops and regular expressions, and order by numbers. Until then no other cluster is selected.", decide.Budget, memory>>20)
}

// set sets a condition of a selection.
func (s *session) set(selection *operatorv1alpha1.ClusterSelection, of string, c metav1.Condition) {
	c.Type, c.ObservedGeneration, c.LastTransitionTime = of, selection.Generation, metav1.Time{Time: s.Clock.Now().UTC().Truncate(time.Second)}
	meta.SetStatusCondition(&selection.Status.Conditions, c)
}

// write writes the status of a selection if it is another than before, and returns the selection
// as it is then; nil when it is gone.
func (s *session) write(ctx context.Context, before *operatorv1alpha1.ClusterSelectionStatus, selection *operatorv1alpha1.ClusterSelection) (*operatorv1alpha1.ClusterSelection, error) {
	if equality.DeepEqual(*before, selection.Status) {
		return selection, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(selection)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind("ClusterSelection"))
	written, err := s.objects.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("write its status: %w", err)
	}
	out := &operatorv1alpha1.ClusterSelection{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(written.Object, out)
}

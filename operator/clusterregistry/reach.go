package clusterregistry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/informers"
)

// reach is in which namespaces of the host cluster the controller may work, and why not in the
// others that the spec names. Whoever may write a ClusterRegistry chooses these, and has no
// rights there: an administrator of the host cluster says which registries may reach beyond
// their namespaces at all, and whoever may label a namespace lets one in.
type reach struct {
	namespaces []string
	// refused says what opens the others, empty where there are none.
	refused string
}

// readReach finds out which namespaces are open to the registry.
func (r *Reconciler) readReach(ctx context.Context, s *scope) error {
	s.reach = reach{}
	var asked, foreign, closed []string
	for _, function := range s.Registry.Spec.Controllers.Functions() {
		asked = append(asked, s.Registry.Spec.Controllers.Reaches(function)...)
	}
	slices.Sort(asked)
	for _, namespace := range slices.Compact(asked) {
		if namespace == s.Registry.Namespace {
			s.reach.namespaces = append(s.reach.namespaces, namespace)
			continue
		}
		if !r.MayReach(s.Registry.Namespace) {
			foreign = append(foreign, namespace)
			continue
		}
		switch open, err := opened(ctx, s, namespace); {
		case err != nil:
			return err
		case open:
			s.reach.namespaces = append(s.reach.namespaces, namespace)
		default:
			closed = append(closed, namespace)
		}
	}
	var refused []string
	if len(foreign) > 0 {
		refused = append(refused, r.notReached(s.Registry.Namespace, foreign))
	}
	if len(closed) > 0 {
		refused = append(refused, fmt.Sprintf("the controller does not work in namespace %s, which does not exist, is terminating, or is not open to this registry; to open it: kubectl label namespace %s %s=%s",
			strings.Join(closed, ", "), strings.Join(closed, " "), contract.NamespaceLabel(s.Registry.Name), s.Registry.Namespace))
	}
	s.reach.refused = strings.Join(refused, "; ")
	return nil
}

// notReached says why registries of a namespace reach no other one, and what lets them.
func (r *Reconciler) notReached(namespace string, foreign []string) string {
	if len(r.Namespaces) > 0 {
		return fmt.Sprintf("the controller does not work in namespace %s: this operator manages some namespaces only, and gives no rights in others; name %s alone, or use an operator of all namespaces", strings.Join(foreign, ", "), namespace)
	}
	return fmt.Sprintf("the controller does not work in namespace %s: registries of namespace %s may not reach others; an administrator of the host cluster adds %s to --aggregated-namespaces (or AGGREGATED_NAMESPACES) of the operator", strings.Join(foreign, ", "), namespace, namespace)
}

// MayReach reports whether the controllers of registries in a namespace may work in other
// namespaces that are open to them. It is the same decision as MayAggregate: these namespaces
// are trusted with more than their own content.
func (r *Reconciler) MayReach(namespace string) bool {
	return len(r.Namespaces) == 0 && r.MayAggregate(namespace)
}

// opened reports whether a namespace exists, stays, and has the label of the registry.
func opened(ctx context.Context, s *scope, namespace string) (bool, error) {
	found := informers.Namespace()
	if err := s.Live.Get(ctx, client.ObjectKey{Name: namespace}, found); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read namespace %s, which spec.controllers names: %w", namespace, err)
	}
	return found.DeletionTimestamp == nil && found.Labels[contract.NamespaceLabel(s.Registry.Name)] == s.Registry.Namespace, nil
}

// openedNamespaces calls for the registries that a namespace is opened to, or closed.
func (r *Reconciler) openedNamespaces() Trigger {
	changed := predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(openedTo(e.Object)) > 0 },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !slices.Equal(openedTo(e.ObjectOld), openedTo(e.ObjectNew)) || e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
	}
	// An update calls for those of before as well: both objects are mapped.
	calls := func(ctx context.Context, object client.Object) []reconcile.Request {
		// Labels may name what does not exist, and as many as there is room for.
		return slices.DeleteFunc(openedTo(object), func(request reconcile.Request) bool {
			return apierrors.IsNotFound(r.Client.Get(ctx, request.NamespacedName, &operatorv1alpha1.ClusterRegistry{}))
		})
	}
	return Trigger{informers.Namespace(), calls, changed}
}

// openedTo returns the registries that the labels of a namespace name, in the order of their
// names.
func openedTo(namespace client.Object) (out []reconcile.Request) {
	for key, value := range namespace.GetLabels() {
		if name, is := strings.CutPrefix(key, contract.NamespaceLabel("")); is && name != "" && value != "" {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: value, Name: name}})
		}
	}
	slices.SortFunc(out, func(a, b reconcile.Request) int { return strings.Compare(a.String(), b.String()) })
	return out
}

package permission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/pass"
)

// Reach is in which namespaces of the host cluster the controller may work, and why not in the
// others that the spec names. Whoever may write a ClusterRegistry chooses these, and has no
// rights there: an administrator of the host cluster says which registries may reach beyond
// their namespaces at all, and whoever may label a namespace lets one in.
type Reach struct {
	Namespaces []string
	// Refused says what opens the others, empty where there are none.
	Refused string
}

// Reach finds out which namespaces are open to the registry.
func (n Namespaces) Reach(ctx context.Context, p pass.Pass) (Reach, error) {
	var found Reach
	var asked, foreign, closed []string
	for _, function := range p.Registry.Spec.Controllers.Functions() {
		asked = append(asked, p.Registry.Spec.Controllers.Reaches(function)...)
	}
	slices.Sort(asked)
	for _, namespace := range slices.Compact(asked) {
		if namespace == p.Registry.Namespace {
			found.Namespaces = append(found.Namespaces, namespace)
			continue
		}
		if !n.mayReach(p.Registry.Namespace) {
			foreign = append(foreign, namespace)
			continue
		}
		switch open, err := opened(ctx, p, namespace); {
		case err != nil:
			return Reach{}, err
		case open:
			found.Namespaces = append(found.Namespaces, namespace)
		default:
			closed = append(closed, namespace)
		}
	}
	var refused []string
	if len(foreign) > 0 {
		refused = append(refused, n.notReached(p.Registry.Namespace, foreign))
	}
	if len(closed) > 0 {
		refused = append(refused, fmt.Sprintf("the controller does not work in namespace %s, which does not exist, is terminating, or is not open to this registry; to open it: kubectl label namespace %s %s=%s",
			strings.Join(closed, ", "), strings.Join(closed, " "), contract.NamespaceLabel(p.Registry.Name), p.Registry.Namespace))
	}
	found.Refused = strings.Join(refused, "; ")
	return found, nil
}

// notReached says why registries of a namespace reach no other one, and what lets them.
func (n Namespaces) notReached(namespace string, foreign []string) string {
	if len(n.Managed) > 0 {
		return fmt.Sprintf("the controller does not work in namespace %s: this operator manages some namespaces only, and gives no rights in others; name %s alone, or use an operator of all namespaces", strings.Join(foreign, ", "), namespace)
	}
	return fmt.Sprintf("the controller does not work in namespace %s: registries of namespace %s may not reach others; an administrator of the host cluster adds %s to --aggregated-namespaces (or AGGREGATED_NAMESPACES) of the operator", strings.Join(foreign, ", "), namespace, namespace)
}

// opened reports whether a namespace exists, stays, and has the label of the registry.
func opened(ctx context.Context, p pass.Pass, namespace string) (bool, error) {
	found := informers.Namespace()
	if err := p.Live.Get(ctx, client.ObjectKey{Name: namespace}, found); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read namespace %s, which spec.controllers names: %w", namespace, err)
	}
	return found.DeletionTimestamp == nil && found.Labels[contract.NamespaceLabel(p.Registry.Name)] == p.Registry.Namespace, nil
}

// Opens lets the changes of a namespace pass by which it is opened to registries, or closed.
var Opens = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return len(openedTo(e.Object)) > 0 },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !slices.Equal(openedTo(e.ObjectOld), openedTo(e.ObjectNew)) || e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	},
}

// OpenedTo returns the registries that a namespace is open to, as far as there are such: labels may
// name what does not exist, and as many as there is room for.
func OpenedTo(registries client.Reader) handler.MapFunc {
	return func(ctx context.Context, namespace client.Object) []reconcile.Request {
		return slices.DeleteFunc(openedTo(namespace), func(request reconcile.Request) bool {
			return apierrors.IsNotFound(registries.Get(ctx, request.NamespacedName, &operatorv1alpha1.ClusterRegistry{}))
		})
	}
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

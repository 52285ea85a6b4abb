// Package gate reads whether a namespace of the host cluster is open to a registry: whoever may
// label it says so, by a label that names the registry. The right to write a ClusterRegistry
// reaches no other namespace.
package gate

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/clusterregistry/operator/internal/contract"
)

// Gate reads namespaces for the registry of a name and a namespace.
type Gate struct {
	Namespaces          corev1client.NamespaceInterface
	Registry, Namespace string
}

// Answer is what a namespace says of a registry.
type Answer struct {
	// Closed says why the namespace is not open, and what opens it, in sentences without the
	// last period; empty when it is open.
	Closed string
	// UID and Labels are those of a namespace that is open, and Terminating says that it is
	// being deleted.
	UID         types.UID
	Labels      map[string]string
	Terminating bool
}

// Ask reads a namespace, for which the right to get that one is enough. That of the registry is
// always open. An error means that it is not known.
func (g Gate) Ask(ctx context.Context, name string) (Answer, error) {
	found, err := g.Namespaces.Get(ctx, name, metav1.GetOptions{})
	key := contract.NamespaceLabel(g.Registry)
	label := fmt.Sprintf("kubectl label namespace %s %s=%s", name, key, g.Namespace)
	switch {
	case apierrors.IsNotFound(err):
		return Answer{Closed: fmt.Sprintf("There is no namespace %q. Create it and open it to this registry: kubectl create namespace %s; %s", name, name, label)}, nil
	case apierrors.IsForbidden(err):
		return Answer{Closed: fmt.Sprintf("The controller may not read namespace %q: there is none, or the role for it is not bound to the controller's ServiceAccount by a RoleBinding in that namespace (any more): %v", name, err)}, nil
	case err != nil:
		return Answer{}, fmt.Errorf("read namespace %q: %w", name, err)
	case name != g.Namespace && found.Labels[key] != g.Namespace:
		return Answer{Closed: fmt.Sprintf("Namespace %q is not open to this registry. An administrator opens it: %s", name, label)}, nil
	}
	return Answer{UID: found.UID, Labels: found.Labels, Terminating: found.DeletionTimestamp != nil}, nil
}

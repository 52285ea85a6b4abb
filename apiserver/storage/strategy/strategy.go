// Package strategy is what all resources of the registry have in common when
// they are written.
package strategy

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
)

// Base is embedded by a resource's strategy, which adds what it prepares and
// validates. The resource belongs to no namespace, and a PUT of an absent object
// creates it.
type Base struct {
	runtime.ObjectTyper
	names.NameGenerator
	collection rest.GarbageCollectionPolicy
}

var _ rest.GarbageCollectionDeleteStrategy = Base{}

// New returns the base for the kinds of a scheme. The policy says what becomes of an
// object's dependents when a deletion doesn't: rest.Unsupported says that there is no
// garbage collector, whatever a deletion says.
func New(scheme *runtime.Scheme, collection rest.GarbageCollectionPolicy) Base {
	return Base{scheme, names.SimpleNameGenerator, collection}
}

// DefaultGarbageCollectionPolicy returns the policy. Where it is rest.Unsupported, a
// deletion also takes away the finalizers that wait for a collector, such as those in
// data of a registry that had one.
func (b Base) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	return b.collection
}

// NamespaceScoped is false.
func (Base) NamespaceScoped() bool { return false }

// AllowCreateOnUpdate is true, as it was in cluster-registry v0.0.4 and as
// "kubectl auth reconcile" expects of roles.
func (Base) AllowCreateOnUpdate(context.Context) bool { return true }

// AllowUnconditionalUpdate is true, as for most resources of Kubernetes.
func (Base) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize changes nothing.
func (Base) Canonicalize(runtime.Object) {}

// WarningsOnCreate returns none.
func (Base) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate returns none.
func (Base) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string { return nil }

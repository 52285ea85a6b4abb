package clusterregistry

import (
	"cmp"
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/informers"
	"github.com/clusterregistry/operator/operator/stage/apiservice"
	"github.com/clusterregistry/operator/operator/verdict"
)

// concurrency is how many registries are reconciled at a time: most of it is
// waiting for their answers.
const concurrency = 8

// Retries says when to reconcile again after an error: soon, and after each further error in a
// row later, but never later than what waits, or any registry, is reconciled again anyway. A
// registry of which one part fails is looked after all the same, and what has failed may be back
// at any time.
// Nothing limits all registries together: their number would make each wait.
func (r *Reconciler) Retries() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](10*time.Millisecond, min(verdict.Backstop, cmp.Or(r.ResyncPeriod, verdict.Vigil)))
}

// Setup registers the reconciler with a manager whose cache has informers.Options.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	var c controller.Controller
	triggers := r.Triggers(func(late Trigger) error {
		return c.Watch(source.Kind(mgr.GetCache(), late.Kind, handler.EnqueueRequestsFromMapFunc(late.Calls), late.Passes))
	})
	build := builder.ControllerManagedBy(mgr).Named("clusterregistry").
		For(triggers[0].Kind, builder.WithPredicates(triggers[0].Passes)).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, RateLimiter: r.Retries()})
	for _, trigger := range triggers[1:] {
		build = build.Watches(trigger.Kind, handler.EnqueueRequestsFromMapFunc(trigger.Calls), builder.WithPredicates(trigger.Passes))
	}
	var err error
	if c, err = build.Build(r); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(r.untilEnd)) // of the leader alone
}

// registryOf returns the registry that an object names in its labels, or whose
// servers an APIService of the registry's group leads to.
func registryOf(_ context.Context, object client.Object) []reconcile.Request {
	key := client.ObjectKey{Namespace: object.GetLabels()[operatorv1alpha1.LabelNamespace], Name: object.GetLabels()[operatorv1alpha1.LabelInstance]}
	if service, is := object.(*apiregistrationv1.APIService); is && apply.Owner(object) == "" {
		key = client.ObjectKey{}
		if namespace, name, found := strings.Cut(apply.Backend(service), "/"); found && service.Spec.Group == apiservice.Group && strings.HasSuffix(name, contract.ServerSuffix) {
			key = client.ObjectKey{Namespace: namespace, Name: strings.TrimSuffix(name, contract.ServerSuffix)}
		}
	}
	if key.Namespace == "" || key.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// savedBy returns the registry that a backup is of, whether it exists or not: all of the
// namespace when that can't be decoded. Handlers are given trees (informers.Tolerant).
func (r *Reconciler) savedBy(ctx context.Context, object client.Object) []reconcile.Request {
	tree, is := object.(*unstructured.Unstructured)
	if !is {
		return nil
	}
	if name := informers.SavedBy(tree); name != "" {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: tree.GetNamespace(), Name: name}}}
	}
	return r.listed(ctx, client.InNamespace(tree.GetNamespace()))
}

// all returns all registries: they may have waited for cert-manager.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.listed(ctx)
}

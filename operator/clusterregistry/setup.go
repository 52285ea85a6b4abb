package clusterregistry

import (
	"context"
	"slices"
	"strings"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
)

// kubeSystem is where servers are permitted to read who the host's aggregator is.
const kubeSystem = metav1.NamespaceSystem

// concurrency is how many registries are looked at at a time: most of it is
// waiting for their answers.
const concurrency = 8

// owned are the kinds that registries consist of and that the host always serves.
func owned() []client.Object {
	kinds := []client.Object{&corev1.Service{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &batchv1.Job{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &apiregistrationv1.APIService{}}
	for _, kind := range unread {
		kinds = append(kinds, metadataOf(kind))
	}
	return kinds
}

// unread are the kinds of objects of which nothing is read but whether they have
// changed. The operator holds no more than their metadata: the label that its cache
// selects by is for anybody to set, and a ConfigMap can have a megabyte.
var unread = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
}

// MetadataOnly returns the kinds of which the operator's cache has no more than the
// metadata, for apply.New.
func MetadataOnly() []schema.GroupKind {
	out := []schema.GroupKind{issuerKind.GroupKind()}
	for _, kind := range unread {
		out = append(out, kind.GroupKind())
	}
	return out
}

// metadataOf stands for a kind of which only the metadata is watched or read.
func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

var issuerKind = certmanagerv1.SchemeGroupVersion.WithKind(certmanagerv1.IssuerKind)

// issued are the kinds that cert-manager brings.
func issued() []client.Object {
	return []client.Object{&certmanagerv1.Certificate{}, metadataOf(issuerKind)}
}

// Setup registers the reconciler with a manager whose cache has CacheOptions.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	build := builder.ControllerManagedBy(mgr).Named("clusterregistry").
		For(&operatorv1alpha1.ClusterRegistry{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		WatchesMetadata(newCRD(), handler.EnqueueRequestsFromMapFunc(r.all))
	for _, kind := range owned() {
		build = build.Watches(kind, handler.EnqueueRequestsFromMapFunc(registryOf))
	}
	if len(r.Namespaces) == 0 {
		requests, terminating := r.terminatingNamespaces()
		build = build.WatchesMetadata(metadataOf(namespaceKind), requests, builder.WithPredicates(terminating))
	}
	c, err := build.Build(r)
	if err != nil {
		return err
	}
	r.certManager.watch = func() error {
		for _, kind := range issued() {
			if err := c.Watch(source.Kind(mgr.GetCache(), kind, handler.EnqueueRequestsFromMapFunc(registryOf))); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// registryOf returns the registry that an object names in its labels, or whose
// servers an APIService of the registry's group leads to.
func registryOf(_ context.Context, object client.Object) []reconcile.Request {
	key := client.ObjectKey{Namespace: object.GetLabels()[operatorv1alpha1.LabelNamespace], Name: object.GetLabels()[operatorv1alpha1.LabelInstance]}
	if service, is := object.(*apiregistrationv1.APIService); is && apply.Owner(object) == "" {
		key = client.ObjectKey{}
		if namespace, name, found := strings.Cut(apply.Backend(service), "/"); found && service.Spec.Group == registryGroup && strings.HasSuffix(name, contract.ServerSuffix) {
			key = client.ObjectKey{Namespace: namespace, Name: strings.TrimSuffix(name, contract.ServerSuffix)}
		}
	}
	if key.Namespace == "" || key.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// all returns all registries: they may have waited for cert-manager.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.listed(ctx)
}

// Watches reports whether the registries of a namespace are this operator's.
func (r *Reconciler) Watches(namespace string) bool {
	return len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, namespace)
}

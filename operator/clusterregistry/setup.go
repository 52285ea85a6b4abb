package clusterregistry

import (
	"context"
	"slices"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// kubeSystem is where servers are permitted to read who the host's aggregator is.
const kubeSystem = metav1.NamespaceSystem

// concurrency is how many registries are looked at at a time: most of it is
// waiting for their answers.
const concurrency = 8

// owned are the kinds that registries consist of and that the host always serves.
func owned() []client.Object {
	return []client.Object{
		&corev1.ConfigMap{}, &corev1.ServiceAccount{}, &corev1.Service{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{},
		&batchv1.Job{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{},
		&rbacv1.ClusterRoleBinding{}, &rbacv1.RoleBinding{}, &apiregistrationv1.APIService{},
	}
}

// issued are the kinds that cert-manager brings.
func issued() []client.Object {
	return []client.Object{&certmanagerv1.Certificate{}, &certmanagerv1.Issuer{}}
}

// CacheOptions limits the operator's memory to what it needs: registries of the
// namespaces that it watches (all when there are none named), its own objects by
// their label, the addresses of nodes, and the name of one CRD.
func CacheOptions(namespaces []string) cache.Options {
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		// For all kinds: those of cert-manager can't be named before they exist.
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy}),
		ByObject: map[client.Object]cache.ByObject{
			&operatorv1alpha1.ClusterRegistry{}: {Label: labels.Everything()},
			newCRD():                            {Label: labels.Everything(), Field: fields.OneTermEqualSelector(metav1.ObjectNameField, certificatesCRD)},
			&corev1.Node{}:                      {Label: labels.Everything(), Transform: onlyAddresses},
			&rbacv1.RoleBinding{}:               {Namespaces: map[string]cache.Config{kubeSystem: {}}},
		},
	}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// onlyAddresses strips a node of all that is not read.
func onlyAddresses(object any) (any, error) {
	node, is := object.(*corev1.Node)
	if !is {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, CreationTimestamp: node.CreationTimestamp},
		Status:     corev1.NodeStatus{Addresses: node.Status.Addresses},
	}, nil
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

// registryOf returns the registry that an object names in its labels.
func registryOf(_ context.Context, object client.Object) []reconcile.Request {
	key := client.ObjectKey{Namespace: object.GetLabels()[operatorv1alpha1.LabelNamespace], Name: object.GetLabels()[operatorv1alpha1.LabelInstance]}
	if key.Namespace == "" || key.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// all returns all registries: they may have waited for cert-manager.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &operatorv1alpha1.ClusterRegistryList{}
	if err := r.Client.List(ctx, list); err != nil && !apierrors.IsNotFound(err) {
		return nil // each comes again by itself
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// Watches reports whether the registries of a namespace are this operator's.
func (r *Reconciler) Watches(namespace string) bool {
	return len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, namespace)
}

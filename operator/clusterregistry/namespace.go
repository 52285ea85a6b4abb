package clusterregistry

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/informers"
)

// A namespace that is terminating takes its registries with it, but kube-controller-manager
// deletes the servers' pods before it comes to the ClusterRegistry. Until then the
// host would list an API without a backend, and every deletion of a namespace would
// hang. So a registry counts as deleted as soon as its namespace is. An operator of
// all namespaces watches them and learns of it seconds before anything in the
// namespace is deleted. A Role can't grant that watch: an operator of some
// namespaces asks in each reconcile, and the first pod that terminates causes one.

// inNamespace returns the registries in a namespace.
func (r *Reconciler) inNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	return r.listed(ctx, client.InNamespace(namespace.GetName()))
}

// terminatingNamespaces calls for the registries in namespaces that are terminating.
func (r *Reconciler) terminatingNamespaces() Trigger {
	return Trigger{informers.Namespace(), r.inNamespace, predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil })}
}

// listed returns the registries of a list.
func (r *Reconciler) listed(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	list := &operatorv1alpha1.ClusterRegistryList{}
	if err := r.Client.List(ctx, list, options...); err != nil {
		return nil // each is reconciled again anyway
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// uidRange is the annotation by which OpenShift gives the pods of a namespace the users that they
// run as: a pod that names another one is refused.
const uidRange = "openshift.io/sa.scc.uid-range"

// unreadRange stands for the range of users of a namespace that can't be read: there is one if pods
// of the registry are made without a user or group that the manifests name. To guess would replace
// all pods, and the platform would refuse the new ones. The cache has no templates.
func (r *Reconciler) unreadRange(ctx context.Context, s *scope) (string, error) {
	servers, members := &appsv1.Deployment{}, &appsv1.StatefulSet{}
	for suffix, workload := range map[string]client.Object{contract.ServerSuffix: servers, contract.EtcdSuffix: members} {
		if err := r.Live.Get(ctx, s.Key(suffix), workload); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("find out whether the platform gives users to the pods: %w", err)
		}
	}
	for _, pods := range []corev1.PodSpec{servers.Spec.Template.Spec, members.Spec.Template.Spec} {
		if user := pods.SecurityContext; user != nil && (user.RunAsUser == nil || user.RunAsGroup == nil || user.FSGroup == nil) {
			return "unknown", nil
		}
	}
	return "", nil
}

// readNamespace notes what the registry's namespace says: whether it is being deleted, which can't
// be called back, and which users pods get there. Where an older release's Role does not let the
// operator ask, the deletion of the ClusterRegistry itself is what it goes by.
func (r *Reconciler) readNamespace(ctx context.Context, s *scope) error {
	name, namespace := s.Registry.Namespace, informers.Namespace()
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsForbidden(err) {
		logf.FromContext(ctx).Info("may not read the namespace, so that its deletion is noticed late: apply the operator's Role there again", "error", err.Error())
		s.uidRange, err = r.unreadRange(ctx, s)
		return err
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read namespace %s: %w", name, err)
	}
	s.Terminating, s.uidRange = namespace.DeletionTimestamp != nil, namespace.Annotations[uidRange]
	return nil
}

package clusterregistry

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/diagnose"
)

// The components that have pods.
const (
	componentEtcd     = "etcd"
	componentServer   = "server"
	componentSnapshot = "snapshot"
)

// pods returns the pods of a component, by name.
func (r *Reconciler) pods(ctx context.Context, s *scope, component string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := r.Client.List(ctx, list, client.InNamespace(s.registry.Namespace), client.MatchingLabels{
		operatorv1alpha1.LabelInstance: s.registry.Name, operatorv1alpha1.LabelComponent: component})
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, err
}

// running returns the pods that have not ended for good, as those have that were
// evicted for want of a node's resources: the host keeps them for a while.
func running(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	})
}

// diagnoser explains what is not ready.
func (r *Reconciler) diagnoser() diagnose.Diagnoser {
	return diagnose.Diagnoser{Live: r.Live, Client: r.Client}
}

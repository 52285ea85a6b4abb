package render

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterregistry/operator/internal/contract"
)

// HidesClusters reports whether the servers of a Deployment do.
func HidesClusters(servers *appsv1.Deployment) bool {
	return slices.ContainsFunc(servers.Spec.Template.Spec.Containers, func(container corev1.Container) bool { return slices.Contains(container.Args, contract.HidingFlag) })
}

package render

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

const visibilityFlag = "--visibility="

// CanHideClusters reports whether servers of a layout show users only the clusters of their
// ClusterSets, where they are told to.
func CanHideClusters(layout string) bool { return layout != "v1" }

// HidesClusters reports whether the servers of a Deployment do.
func HidesClusters(servers *appsv1.Deployment) bool {
	for _, container := range servers.Spec.Template.Spec.Containers {
		if slices.Contains(container.Args, visibilityFlag+string(operatorv1alpha1.VisibilityClusterSets)) {
			return true
		}
	}
	return false
}
